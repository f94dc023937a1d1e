#include "replication/chain_copy.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "journal/log_journal.h"
#include "lockd/file_journal.h"
#include "replication/shared_settings.h"

namespace lockd {

using Status = etcd::Answer::Status;

namespace {

constexpr Duration kDeadline = std::chrono::seconds(5);
constexpr Duration kRetry = std::chrono::milliseconds(200);
// A copy fails if etcd does not answer for this long.
constexpr Duration kSilenceMax = std::chrono::seconds(30);

constexpr std::int64_t kPage = 16;
// The number of failed attempts, as by a compaction of revisions that are still unread.
constexpr int kFailuresMax = 5;
// A refusal is rarely temporary, as while etcd's users are being changed.
constexpr Duration kRefusalMax = std::chrono::seconds(2);
// The journal is flushed after this many bytes.
constexpr std::size_t kWriteSize = std::size_t{1} << 20;

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

Duration until(Time next, Time now) { return next > now ? next - now : Duration::zero(); }

}  // namespace

ChainCopy::ChainCopy(etcd::Client& client, const Clock& clock, const ChainCopyOptions& options)
    : clock_(clock),
      options_(options),
      context_{.client = client,
               .keys = EtcdKeys(options_.cluster),
               .timeouts = {kDeadline / 4, kDeadline},
               .retry = kRetry,
               .stats = stats_,
               .log =
                   [this](Severity severity, std::string_view line) {
                     last_error_ = line;
                     options_.log(severity, line);
                   }},
      progressed_(clock.now()) {}

void ChainCopy::fail_silent(const std::string& consequence) {
  fail("etcd has not answered for 30 seconds" +
       (last_error_.empty() ? "" : "; the last of it: " + last_error_) + consequence);
}

// --- Export ---

ChainExport::ChainExport(etcd::Client& client, const Clock& clock, const ChainCopyOptions& options)
    : ChainCopy(client, clock, options) {
  begin();
}

void ChainExport::begin() {
  follower_.reset();
  state_.emplace(options_.fence_floor);
  follower_.emplace(context_, kPage);
}

Duration ChainExport::turn() {
  if (is_over()) return Duration::max();
  const Time now = clock_.now();
  const Time next = follower_->turn(now, [&](const Event& event) {
    Event here = event;
    here.expires_at = now + (event.expires_at - Time{});
    return state_->apply(here);
  });
  const ChainFailure failure = follower_->failure();
  if (follower_->is_current()) finish();
  if (failure.unreadable || (!failure.why.empty() && ++failures_ == kFailuresMax)) {
    fail("the chain of cluster " + options_.cluster + " cannot be read: " + failure.why);
  }
  if (is_over()) return Duration::max();
  if (!failure.why.empty()) {
    options_.log(Severity::info,
                 "cluster: " + failure.why + "; the chain is read again from its beginning");
    begin();
    return Duration::zero();
  }
  const auto revision = static_cast<std::uint64_t>(follower_->chain().revision);
  const std::uint64_t progress = revision + follower_->chain().size;
  if (std::exchange(progress_, progress) != progress) progressed_ = now;
  const Time latest = progressed_ + (follower_->is_refused() ? kRefusalMax : kSilenceMax);
  if (now >= latest) follower_->is_refused() ? fail(last_error_) : fail_silent("");
  return until(std::min(next, latest), now);
}

// The follower has applied everything up to the head, all read at one revision.
void ChainExport::finish() {
  revision_ = follower_->chain().revision;
  is_done_ = !follower_->chain().last_batch.is_none();
  follower_->stop();
  if (is_done_) return;
  fail("etcd has no chain of a cluster " + options_.cluster + ": there is no batch under " +
       context_.keys.prefix);
}

StateSummary ChainExport::write(Storage& storage) {
  std::string complaint = "the journal is not completely on the disk";
  LogJournalOptions options;
  options.log = [&](std::string_view line) { complaint = line; };
  options.segment = {.reserve = 0, .step_min = 0};  // nothing is appended later
  options.behind_from = kWriteSize;
  LogJournal journal(storage, options);
  journal.recover([](const Event&) {});

  // Both clocks are CLOCK_BOOTTIME plus a constant. In this order no deadline becomes earlier.
  const Time here = clock_.now();
  const Duration shift = journal.now() - here;
  StateSummary summary;
  Position end = 0;
  std::vector<Event> shifted;
  const HeldState::Sink sink = [&](std::span<const Event> events) {
    shifted.assign(events.begin(), events.end());
    for (Event& event : shifted) {
      event.expires_at = event.expires_at + shift;
      summary.add(event);
    }
    end = journal.append(shifted);
  };
  for (bool first = true; state_->describe_some(std::exchange(first, false), sink);) {
    if (journal.is_behind()) journal.flush();
  }
  journal.close();
  if (journal.durable() < end) throw JournalError(complaint);
  return summary;
}

// --- Import ---

// A torn tail was never acknowledged. It is skipped and stays in the file.
JournalReader::JournalReader(Storage& storage, const ChainCopyOptions& options)
    : storage_(storage),
      batch_max_(options.batch_max),
      state_(options.fence_floor),
      buffer_({.payload_max = options.batch_max}, 0) {
  const Log log = [&](std::string_view line) { options.log(Severity::info, line); };
  lock_directory(storage_);
  scan_ = scan(storage_, log);
  if (scan_.is_new()) throw JournalError(storage_.directory() + ": there is no journal");
  replay(storage_, scan_, log, [&](const Event& event) {
    if (state_.apply(event)) return;
    throw JournalError(storage_.directory() + ": the journal contradicts itself at key '" +
                       std::string(event.key) + "', fence " + std::to_string(event.fence));
  });
}

// On the boot that wrote the journal, the time since then counts. On another machine it does not: a
// difference between two wall clocks would end leases early.
Time JournalReader::now() {
  ClockReading now = storage_.moment();
  now.wall_ns = 0;
  return engine_time_at(now, scan_);
}

std::optional<Chunk> JournalReader::next() {
  const HeldState::Sink sink = [this](std::span<const Event> events) {
    for (const Event& event : events) summary_.add(event);
    buffer_.append(events);
  };
  if (queue_.empty()) {
    while (!described_all_ && buffer_.size() < batch_max_) {
      described_all_ = !state_.describe_some(!std::exchange(described_any_, true), sink);
    }
    AppendBuffer::Taken taken = buffer_.take(false);
    std::move(taken.chunks.begin(), taken.chunks.end(), std::back_inserter(queue_));
  }
  if (queue_.empty()) return {};
  Chunk chunk = std::move(queue_.front());
  queue_.pop_front();
  return chunk;
}

ChainImport::ChainImport(etcd::Client& client, const Clock& clock, Storage& storage,
                         const ChainCopyOptions& options)
    : ChainCopy(client, clock, options),
      self_(record_of(options.name)),
      journal_(storage, options) {
  progressed_ = clock_.now();
}

Duration ChainImport::turn() {
  if (is_over()) return Duration::max();
  const Time now = clock_.now();
  const Time latest = progressed_ + kSilenceMax;
  if (now >= latest) {
    fail_silent(step_ == Step::finish ? "; whether all of it was imported is not known" : "");
    return Duration::max();
  }
  if (!in_flight_ && now >= next_try_) send(now);
  return until(in_flight_ ? latest : std::min(next_try_, latest), now);
}

void ChainImport::send(Time now) {
  in_flight_ = true;
  claimed_ |= step_ == Step::claim;
  next_try_ = now + kRetry;
  context_.client.execute(next_txn(), kDeadline, [this](const etcd::Answer& answer) {
    in_flight_ = false;
    on_answer(answer);
  });
}

// Every transaction may be sent, and may arrive, any number of times.
etcd::Txn ChainImport::next_txn() const {
  const EtcdKeys& keys = context_.keys;
  const auto epoch = static_cast<etcd::Revision>(last_.epoch);
  const etcd::Compare leads{keys.leader, epoch};
  switch (step_) {
    case Step::look: break;
    case Step::claim:
      return {.compare = {{keys.leader, seen_leader_}, {keys.head, etcd::Revision{0}}},
              .then = {etcd::put(keys.leader, to_text(self_))}};
    case Step::write:
      return {.compare = {leads},
              .then = {etcd::put(keys.batch(last_), batch_),
                       etcd::put(keys.base, to_text(behind_all())),
                       etcd::put(keys.heartbeat, std::to_string(epoch))}};
    case Step::finish:
      return {.compare = {leads},
              .then = {etcd::put(keys.base, to_text(first())), etcd::put(keys.head, to_text(last_)),
                       etcd::erase(keys.leader)},
              .otherwise = {etcd::get(keys.base)}};
  }
  return {.then = {etcd::get(keys.leader), etcd::get(keys.head), etcd::get(keys.base)}};
}

void ChainImport::on_answer(const etcd::Answer& answer) {
  context_.errors.record(answer);
  if (answer.status == Status::refused || answer.status == Status::no_space) {
    return fail("etcd: " + answer.message);
  }
  if (answer.status != Status::done) return context_.client.switch_member();
  progressed_ = clock_.now();
  next_try_ = {};
  switch (step_) {
    case Step::look: return on_look(answer);
    case Step::claim: step_ = Step::look; return;  // shows which import owns the key
    case Step::write: return answer.succeeded ? prepare_batch() : fail_overtaken();
    case Step::finish: return on_finish(answer);
  }
}

// If the transaction did not apply, an earlier try may have, and servers may lead since.
void ChainImport::on_finish(const etcd::Answer& answer) {
  const std::string base =
      answer.succeeded || answer.found.front().empty() ? "" : answer.found.front().front().value;
  is_done_ = answer.succeeded || base == to_text(first());
  if (is_done_) return;
  if (base == to_text(behind_all())) return fail_overtaken();
  fail("another server leads the cluster " + options_.cluster +
       " by now, and whether the journal is in it is not known: check which locks are held");
}

void ChainImport::on_look(const etcd::Answer& answer) {
  const std::vector<etcd::Entry>& leader = answer.found[0];
  const bool has_head = !answer.found[1].empty();
  const bool has_base = !answer.found[2].empty();
  if (!leader.empty() && leader.front().value == to_text(self_)) {
    last_ = {static_cast<std::uint64_t>(leader.front().modified), 0};
    return prepare_batch();
  }
  const bool is_led = !leader.empty() && !is_of_an_import(leader.front());
  if (has_head || is_led || (leader.empty() && has_base)) {
    return fail("there is a cluster " + options_.cluster +
                " in etcd already: import under another name (--etcd-cluster), or stop its servers "
                "and remove it (etcdctl del --prefix " +
                context_.keys.prefix + ")");
  }
  const etcd::Revision seen = leader.empty() ? 0 : leader.front().modified;
  if (claimed_ && seen != seen_leader_) return fail_overtaken();
  seen_leader_ = seen;
  step_ = Step::claim;
}

// Prepares the next batch, or the last transaction if there is none.
void ChainImport::prepare_batch() {
  std::optional<Chunk> chunk = journal_.next();
  if (!chunk.has_value()) {
    step_ = Step::finish;
    return;
  }
  BatchHeader header{.position = chunk->position, .made_at = journal_.now()};
  if (step_ == Step::write) {
    header.previous = last_;
    ++last_.seq;
  }
  batch_ = std::move(chunk->bytes);
  seal(header, batch_);
  step_ = Step::write;
}

void ChainImport::fail_overtaken() {
  fail("another server or import has begun a cluster " + options_.cluster +
       " meanwhile: nothing of the journal is in it");
}

}  // namespace lockd
