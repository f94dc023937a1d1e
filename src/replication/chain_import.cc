#include "replication/chain_import.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lockd/file_journal.h"
#include "replication/chain_export.h"
#include "replication/shared_settings.h"

namespace lockd {

using etcd::Answer;
using Status = Answer::Status;

namespace {

constexpr Duration kRpc = std::chrono::seconds(5);
constexpr Duration kRetry = std::chrono::milliseconds(200);

// Marks the leader's record, so that a later import recognizes an unfinished one.
constexpr std::string_view kIncarnation = "import-";

// A standby may replace the import after this long without a batch. Safety does not depend on it.
constexpr Duration kImportDetect = std::chrono::seconds(2);

// An import serves no clients: it has no address, and of the shared settings only detect.
LeaderRecord record_of(const std::string& name) {
  return {.incarnation = std::string(kIncarnation) + name,
          .node = "import",
          .address = "-",
          .policy = detect_setting(kImportDetect)};
}

bool is_of_an_import(const etcd::Entry& leader) {
  const auto record = leader_record_in(leader.value);
  return record.has_value() && record->incarnation.starts_with(kIncarnation);
}

}  // namespace

ChainImport::ChainImport(etcd::Client& client, const Clock& clock, Storage& storage,
                         ChainImportOptions options)
    : client_(client),
      clock_(clock),
      storage_(storage),
      options_(std::move(options)),
      keys_(options_.cluster),
      self_(record_of(options_.name)),
      errors_([this](Severity severity, std::string_view line) {
        last_error_ = line;
        options_.log(severity, line);
      }),
      state_(options_.fence_floor),
      buffer_({.payload_max = options_.batch_max}, 0) {
  read_journal();
  last_answer_ = clock_.now();
}

// A torn tail was never acknowledged. It is skipped and stays in the file.
void ChainImport::read_journal() {
  const Log log = [this](std::string_view line) { options_.log(Severity::info, line); };
  lock_directory(storage_);
  scan_ = scan(storage_, log);
  if (scan_.is_new()) throw JournalError(storage_.directory() + ": there is no journal");
  replay(storage_, scan_, log, [&](const Event& event) {
    if (state_.apply(event)) return;
    throw JournalError(storage_.directory() + ": the journal contradicts itself at key '" +
                       std::string(event.key) + "', fence " + std::to_string(event.fence));
  });
}

// The current time by the clock of the journal's deadlines. On the boot that wrote the journal, the
// time since then counts. On another machine it does not: a difference between two wall clocks
// would end leases early.
Time ChainImport::journal_time() {
  ClockReading now = storage_.moment();
  now.wall_ns = 0;
  return engine_time_at(now, scan_);
}

Duration ChainImport::turn() {
  if (is_done() || !error_.empty()) return Duration::max();
  const Time now = clock_.now();
  const Time latest = last_answer_ + kCopySilenceMax;
  if (now >= latest) {
    fail("etcd has not answered for 30 seconds" +
         (last_error_.empty() ? "" : "; the last of it: " + last_error_) +
         (step_ == Step::finish ? "; whether all of it was imported is not known" : ""));
    return Duration::max();
  }
  if (!in_flight_ && now >= next_try_) send(now);
  const Time next = in_flight_ ? latest : std::min(next_try_, latest);
  return next > now ? next - now : Duration::zero();
}

void ChainImport::send(Time now) {
  in_flight_ = true;
  claimed_ |= step_ == Step::claim;
  next_try_ = now + kRetry;
  client_.execute(next_txn(), kRpc, [this](const Answer& answer) {
    in_flight_ = false;
    on_answer(answer);
  });
}

// Every transaction may be sent, and may arrive, any number of times.
etcd::Txn ChainImport::next_txn() const {
  const auto epoch = static_cast<etcd::Revision>(last_.epoch);
  const etcd::Compare leads{keys_.leader, epoch};
  const auto put_base = [&](const BatchId& base) { return etcd::put(keys_.base, to_text(base)); };
  switch (step_) {
    case Step::look: break;
    case Step::claim:
      return {.compare = {{keys_.leader, seen_leader_}, {keys_.head, etcd::Revision{0}}},
              .then = {etcd::put(keys_.leader, to_text(self_))}};
    case Step::write:
      return {.compare = {leads},
              .then = {etcd::put(keys_.batch(last_), batch_), put_base(behind_all()),
                       etcd::put(keys_.heartbeat, std::to_string(epoch))}};
    case Step::finish:
      return {.compare = {leads},
              .then = {put_base(first()), etcd::put(keys_.head, to_text(last_)),
                       etcd::erase(keys_.leader)},
              .otherwise = {etcd::get(keys_.base)}};
    case Step::done: break;
  }
  return {.then = {etcd::get(keys_.leader), etcd::get(keys_.head), etcd::get(keys_.base)}};
}

void ChainImport::on_answer(const Answer& answer) {
  errors_.record(answer);
  if (answer.status == Status::refused || answer.status == Status::no_space) {
    return fail("etcd: " + answer.message);
  }
  if (answer.status != Status::done) return client_.switch_member();
  last_answer_ = clock_.now();
  next_try_ = {};
  switch (step_) {
    case Step::look: return on_look(answer);
    case Step::claim: step_ = Step::look; return;  // shows which import owns the key
    case Step::write: return answer.succeeded ? prepare_batch() : fail_overtaken();
    case Step::finish: return on_finish(answer);
    case Step::done: return;
  }
}

// If the transaction did not apply, an earlier try may have, and servers may lead since.
void ChainImport::on_finish(const Answer& answer) {
  const std::string base =
      answer.succeeded || answer.found.front().empty() ? "" : answer.found.front().front().value;
  if (answer.succeeded || base == to_text(first())) {
    step_ = Step::done;
  } else if (base == to_text(behind_all())) {
    fail_overtaken();
  } else {
    fail("another server leads the cluster " + options_.cluster +
         " by now, and whether the journal is in it is not known: check which locks are held");
  }
}

void ChainImport::on_look(const Answer& answer) {
  const std::vector<etcd::Entry>& leader = answer.found[0];
  const std::vector<etcd::Entry>& head = answer.found[1];
  const std::vector<etcd::Entry>& base = answer.found[2];
  if (!leader.empty() && leader.front().value == to_text(self_)) {
    return begin_epoch(leader.front().modified);
  }
  const bool is_led = !leader.empty() && !is_of_an_import(leader.front());
  if (!head.empty() || is_led || (leader.empty() && !base.empty())) {
    return fail("there is a cluster " + options_.cluster +
                " in etcd already: import under another name (--etcd-cluster), or stop its servers "
                "and remove it (etcdctl del --prefix " +
                keys_.prefix + ")");
  }
  const etcd::Revision seen = leader.empty() ? 0 : leader.front().modified;
  if (claimed_ && seen != seen_leader_) return fail_overtaken();
  seen_leader_ = seen;
  step_ = Step::claim;
}

void ChainImport::begin_epoch(etcd::Revision epoch) {
  last_ = {static_cast<std::uint64_t>(epoch), 0};
  prepare_batch();
}

// Prepares the next batch, or the last transaction if there is none.
void ChainImport::prepare_batch() {
  if (queue_.empty() && !described_all_) describe_more();
  if (queue_.empty()) {
    step_ = Step::finish;
    return;
  }
  BatchHeader header{.position = queue_.front().position, .made_at = journal_time()};
  if (step_ == Step::write) {
    header.previous = last_;
    ++last_.seq;
  }
  batch_ = std::move(queue_.front().bytes);
  queue_.pop_front();
  seal(header, batch_);
  step_ = Step::write;
}

void ChainImport::describe_more() {
  const HeldState::Sink sink = [this](std::span<const Event> events) {
    for (const Event& event : events) summary_.add(event);
    buffer_.append(events);
  };
  while (!described_all_ && buffer_.size() < options_.batch_max) {
    described_all_ = !state_.describe_some(!std::exchange(described_any_, true), sink);
  }
  AppendBuffer::Taken taken = buffer_.take(false);
  std::move(taken.chunks.begin(), taken.chunks.end(), std::back_inserter(queue_));
}

void ChainImport::fail_overtaken() {
  fail("another server or import has begun a cluster " + options_.cluster +
       " meanwhile: nothing of the journal is in it");
}

}  // namespace lockd
