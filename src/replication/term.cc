#include "replication/term.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "replication/records.h"

namespace lockd {

using etcd::Answer;
using etcd::Operation;
using Status = Answer::Status;

namespace {

// The next batch is held back for at most this fraction of the time that the last one took.
constexpr int kGatherFraction = 2;
constexpr Duration kGatherMax = std::chrono::milliseconds(1);

}  // namespace

Term::Term(etcd::Client& client, const EtcdKeys& keys, const TermOptions& options,
           RpcTimeouts& timeouts, ReplicationStats& stats, EtcdErrorLog& errors,
           etcd::Revision epoch, const BatchId& last, Position position)
    : client_(client),
      keys_(keys),
      options_(options),
      timeouts_(timeouts),
      stats_(stats),
      errors_(errors),
      epoch_(epoch),
      last_(last),
      previous_(last),
      revision_(epoch) {
  prepare(std::string(kBatchHeaderSize, '\0'), position, {});
}

std::size_t Term::wanted() const {
  if (is_sending()) return std::numeric_limits<std::size_t>::max();
  return gathering_ ? awaited_ : 1;
}

Time Term::certain_until() const {
  return last_success_ == Time{} ? Time{} : last_success_ + options_.detect * 4 / 5;
}

Time Term::turn(Time now, AppendBuffer* pending) {
  if (!ended_.empty()) return Time::never();
  if (const Time sent = std::exchange(answered_, {}); sent != Time{}) timeouts_.record(sent, now);
  if (std::exchange(just_committed_, false)) {
    const Duration took = now - append_.first_sent;
    stats_.append_time.add(took);
    awaited_ = notified_ + (pending != nullptr ? pending->count() : 0);
    gather_until_ = awaited_ > 1 ? now + std::min(took / kGatherFraction, kGatherMax) : now;
  }
  gathering_ = now < gather_until_ && pending != nullptr && pending->count() < awaited_;
  if (is_idle() && pending != nullptr) {
    AppendBuffer::Taken taken = pending->take(false);
    if (taken.count > 0) notified_ = taken.count;
    std::move(taken.chunks.begin(), taken.chunks.end(), std::back_inserter(queue_));
  }
  if (!is_appending() && !queue_.empty()) {
    Chunk chunk = std::move(queue_.front());
    queue_.pop_front();
    prepare(std::move(chunk.bytes), chunk.position, now);
  }
  if (append_.unsettled && now >= append_.next_try) send(now);
  if (has_begun() && now >= heartbeat_due()) heartbeat(now);

  Time next = gathering_ ? gather_until_ : Time::never();
  if (append_.unsettled) next = append_.next_try;
  return has_begun() ? std::min(next, heartbeat_due()) : next;
}

void Term::prepare(std::string bytes, Position position, Time now) {
  const BatchHeader header{
      .version = options_.version, .previous = previous_, .position = position, .made_at = now};
  append_ = {
      .id = next(), .end = end_of(header, bytes.size() - kBatchHeaderSize), .unsettled = true};
  seal(header, bytes);
  sent_size_ += bytes.size();
  etcd::Compare follows{keys_.head, etcd::Revision{0}};
  if (!previous_.is_none()) follows.is = to_text(previous_);
  append_.txn = guarded({etcd::put(keys_.batch(append_.id), std::move(bytes)),
                         etcd::put(keys_.head, to_text(append_.id))});
  append_.txn.compare.push_back(std::move(follows));
  append_.txn.otherwise.push_back(etcd::get(keys_.head));
  previous_ = append_.id;
  ++next_seq_;
}

void Term::send(Time now) {
  if (append_.first_sent == Time{}) {
    append_.first_sent = now;
  } else {
    stats_.resends.add();
    client_.switch_member();
  }
  append_.sent = now;
  append_.next_try = now + timeouts_.retry_after();
  client_.execute(append_.txn, timeouts_.deadline(),
                  [this, id = append_.id, now](const Answer& answer) { settle(id, now, answer); });
}

void Term::settle(const BatchId& id, Time sent, const Answer& answer) {
  if (!ended_.empty()) return;
  if (id != append_.id || !append_.unsettled) {  // settled by another try
    check_guard(answer);
    return;
  }
  full_ = answer.status == Status::no_space;
  if (answer.status != Status::unknown) answered_ = sent;  // any answer counts
  if (answer.status == Status::refused) handle_rejection(sent, answer);
  errors_.record(answer);
  if (answer.status != Status::done) {
    if (sent == append_.sent) append_.next_try = sent + options_.retry;
    return;
  }
  const bool appended = check_guard(answer);
  if (!ended_.empty()) return;
  if (!appended) return settle_not_succeeded(answer);
  succeeded(sent);
  commit_append();
}

// A refusal of every call may be temporary, as while a password is changed. But if a batch is
// refused before and after a heartbeat that was accepted, the cause is the batch, as its size. It
// would be refused forever, so the term ends, and the next leader does not have the batch.
void Term::handle_rejection(Time sent, const Answer& answer) {
  const std::string what = "batch " + to_text(append_.id) + " of " +
                           std::to_string(append_.txn.then.front().value.size()) + " bytes";
  if (append_.refused == Time{}) {
    append_.refused = sent;
    return errors_.log_rejection(what, answer);
  }
  const bool is_other_taken = last_heartbeat_ > append_.refused && sent > last_heartbeat_;
  if (is_other_taken) ended_ = "etcd refuses " + what + ", and nothing else: " + answer.message;
}

// This node leads, and the head is not the predecessor of the batch.
void Term::settle_not_succeeded(const Answer& answer) {
  const std::vector<etcd::Entry>& head = answer.found.back();
  const std::string last = head.empty() ? "" : head.front().value;
  if (last == to_text(append_.id)) {
    // An earlier try has appended the batch. This one has changed nothing, so the standbys did not
    // restart their windows: only the time of the first send counts.
    stats_.resolved.add();
    succeeded(append_.first_sent);
    return commit_append();
  }
  ended_ = has_begun() ? "the head is '" + last + "', which this leader has not put"
                       : "the head is '" + last + "': it was not followed to its end";
}

void Term::commit_append() {
  append_.unsettled = false;
  committed_ = append_.end;
  last_ = append_.id;
  stats_.appends.add();
  just_committed_ = true;
  for (const Operation& operation : append_.txn.then) {
    stats_.append_bytes.add(operation.value.size());
  }
}

// A batch in flight is a sign of life as well, unless it is refused.
Time Term::heartbeat_due() const {
  const bool is_sign = append_.unsettled && append_.refused == Time{};
  const Time last = is_sign ? std::max(append_.sent, last_success_) : last_success_;
  return std::max(last + options_.detect / 5, next_heartbeat_);
}

// Does not wait for the answers of earlier heartbeats, so the latency of etcd does not limit their
// rate. An answer after `detect` is of no use.
void Term::heartbeat(Time now) {
  heartbeat_sent_ = now;
  next_heartbeat_ = now + options_.detect / 5;
  client_.execute(guarded({etcd::put(keys_.heartbeat, std::to_string(epoch_))}), options_.detect,
                  [this, now](const Answer& answer) { on_heartbeat(now, answer); });
}

void Term::on_heartbeat(Time sent, const Answer& answer) {
  if (!ended_.empty()) return;
  log_heartbeat_error(sent, answer);
  if (answer.status != Status::done) {
    if (sent == heartbeat_sent_) next_heartbeat_ = sent + options_.retry;
    return;
  }
  if (!check_guard(answer)) return;
  answered_ = sent;
  stats_.heartbeats.add();
  last_heartbeat_ = std::max(last_heartbeat_, sent);
  succeeded(sent);
}

// A single lost heartbeat is not logged. While a batch is in flight, its answer logs that etcd
// answers again.
void Term::log_heartbeat_error(Time sent, const Answer& answer) {
  const bool failed = answer.status != Status::done;
  if (failed ? sent > last_success_ : !is_appending()) errors_.record(answer);
}

void Term::succeeded(Time sent) { last_success_ = std::max(last_success_, sent); }

etcd::Txn Term::guarded(std::vector<Operation> then) const {
  return {.compare = {{keys_.leader, epoch_}, {keys_.leader, options_.leader}},
          .then = std::move(then),
          .otherwise = {etcd::get(keys_.leader)}};
}

bool Term::check_guard(const Answer& answer) {
  if (answer.status != Status::done) return false;
  if (answer.revision < epoch_) ended_ = etcd::kAnotherStore;
  if (!ended_.empty()) return false;
  revision_ = std::max(revision_, answer.revision);
  if (answer.succeeded) return true;
  const std::vector<etcd::Entry>& found = answer.found.front();
  const bool leads =
      !found.empty() && found.front().modified == epoch_ && found.front().value == options_.leader;
  if (!leads) ended_ = "another node leads";
  return false;
}

}  // namespace lockd
