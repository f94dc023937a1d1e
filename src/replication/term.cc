#include "replication/term.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockd {

using Status = etcd::Answer::Status;

// The next batch is held back for at most this fraction of the time that the last one took.
constexpr int kGatherFraction = 2;
constexpr Duration kGatherMax = std::chrono::milliseconds(1);

void BatchGathering::on_appended(Time now, Duration took, std::size_t waiting) {
  awaited_ = last_batch_ + waiting;
  until_ = awaited_ > 1 ? now + std::min(took / kGatherFraction, kGatherMax) : now;
}

Time Heartbeat::turn(Time now, Time batch_sent, bool is_appending) {
  is_appending_ = is_appending;
  const Duration interval = guard_.detect() / 5;
  const Time due = std::max(batch_sent, guard_.last_success()) + interval;
  if (now >= std::max(due, next_)) {
    next_ = now + interval;
    send(now);
  }
  return std::max(due, next_);
}

// Does not wait for the answers of earlier heartbeats, so the latency of etcd does not limit their
// rate. An answer after `detect` is of no use.
void Heartbeat::send(Time now) {
  last_sent_ = now;
  context_.client.execute(
      guard_.txn({etcd::put(context_.keys.heartbeat, std::to_string(guard_.epoch()))}),
      guard_.detect(), [this, now](const etcd::Answer& answer) { on_answer(now, answer); });
}

// A single lost heartbeat is not logged. While a batch is in flight, its answer logs that etcd
// answers again.
void Heartbeat::on_answer(Time sent, const etcd::Answer& answer) {
  if (!guard_.ended().empty()) return;
  const bool failed = answer.status != Status::done;
  if (failed ? sent > guard_.last_success() : !is_appending_) context_.errors.record(answer);
  if (failed && sent == last_sent_) next_ = sent + context_.retry;
  if (failed || !guard_.check(answer)) return;
  context_.timeouts.answered(sent);
  guard_.confirm(sent);
}

Term::Term(ReplicationContext& context, LeaderGuard guard, std::uint32_t version,
           const BatchId& last, Position position)
    : context_(context), guard_(std::move(guard)), version_(version), last_(last), previous_(last) {
  prepare(std::string(kBatchHeaderSize, '\0'), position, {});
}

std::size_t Term::wanted() const {
  return is_sending() ? std::numeric_limits<std::size_t>::max() : gathering_.awaited();
}

Time Term::turn(Time now, AppendBuffer* pending) {
  if (!guard_.ended().empty()) return Time::never();
  context_.timeouts.turn(now);
  const std::size_t waiting = pending != nullptr ? pending->count() : 0;
  if (std::exchange(just_committed_, false)) {
    const Duration took = now - append_.first_sent;
    context_.stats.append_time.add(took);
    gathering_.on_appended(now, took, waiting);
  }
  const bool is_gathering = pending != nullptr && gathering_.update(now, waiting);
  if (pending != nullptr && !is_gathering && !is_sending()) {
    AppendBuffer::Taken taken = pending->take(false);
    if (taken.count > 0) gathering_.on_batch(taken.count);
    std::move(taken.chunks.begin(), taken.chunks.end(), std::back_inserter(queue_));
  }
  if (!append_.unsettled && !queue_.empty()) {
    Chunk chunk = std::move(queue_.front());
    queue_.pop_front();
    prepare(std::move(chunk.bytes), chunk.position, now);
  }
  if (append_.unsettled && now >= append_.next_try) send(now);

  const Time next = append_.unsettled ? append_.next_try : gathering_.until();
  if (!has_begun()) return next;
  // A batch in flight is a sign of life as well, unless it is refused.
  const bool is_sign = append_.unsettled && append_.refused == Time{};
  return std::min(next, heartbeat_.turn(now, is_sign ? append_.sent : Time{}, append_.unsettled));
}

void Term::prepare(std::string bytes, Position position, Time now) {
  const BatchHeader header{
      .version = version_, .previous = previous_, .position = position, .made_at = now};
  append_ = {
      .id = next(), .end = end_of(header, bytes.size() - kBatchHeaderSize), .unsettled = true};
  seal(header, bytes);
  sent_size_ += bytes.size();
  etcd::Compare follows{context_.keys.head, etcd::Revision{0}};
  if (!previous_.is_none()) follows.is = to_text(previous_);
  append_.txn = guard_.txn({etcd::put(context_.keys.batch(append_.id), std::move(bytes)),
                            etcd::put(context_.keys.head, to_text(append_.id))});
  append_.txn.compare.push_back(std::move(follows));
  append_.txn.otherwise.push_back(etcd::get(context_.keys.head));
  previous_ = append_.id;
  ++next_seq_;
}

void Term::send(Time now) {
  if (append_.first_sent == Time{}) {
    append_.first_sent = now;
  } else {
    context_.stats.resends.add();
    context_.client.switch_member();
  }
  append_.sent = now;
  append_.next_try = now + context_.timeouts.retry_after();
  context_.execute(append_.txn, [this, id = append_.id, now](const etcd::Answer& answer) {
    on_answer(id, now, answer);
  });
}

void Term::on_answer(const BatchId& id, Time sent, const etcd::Answer& answer) {
  if (!guard_.ended().empty()) return;
  if (id != append_.id || !append_.unsettled) {  // settled by another try
    guard_.check(answer);
    return;
  }
  full_ = answer.status == Status::no_space;
  if (answer.status != Status::unknown) context_.timeouts.answered(sent);
  if (answer.status == Status::refused) on_refusal(sent, answer);
  context_.errors.record(answer);
  if (answer.status != Status::done) {
    if (sent == append_.sent) append_.next_try = sent + context_.retry;
    return;
  }
  if (guard_.check(answer)) return commit(sent);
  if (!guard_.ended().empty()) return;
  const std::vector<etcd::Entry>& head = answer.found.back();
  on_other_head(head.empty() ? "" : head.front().value);
}

// A refusal of every call may be temporary. But if a batch is refused before and after a heartbeat
// that was accepted, its size may be the cause. It would be refused forever, so the term ends.
void Term::on_refusal(Time sent, const etcd::Answer& answer) {
  const std::string batch = "batch " + to_text(append_.id) + " of " +
                            std::to_string(append_.txn.then.front().value.size()) + " bytes";
  if (append_.refused == Time{}) {
    append_.refused = sent;
    return context_.errors.log_rejection(batch, answer);
  }
  const Time accepted = guard_.last_success();
  if (accepted <= append_.refused || sent <= accepted) return;
  guard_.end("etcd refuses " + batch + ", and nothing else: " + answer.message);
}

// This node leads, and the head is not the predecessor of the batch. If it is the batch, an earlier
// try has appended it. This one has changed nothing, so the standbys did not restart their windows:
// only the time of the first send counts.
void Term::on_other_head(const std::string& head) {
  if (head == to_text(append_.id)) {
    context_.stats.resolved.add();
    return commit(append_.first_sent);
  }
  guard_.end(has_begun() ? "the head is '" + head + "', which this leader has not put"
                         : "the head is '" + head + "': it was not followed to its end");
}

void Term::commit(Time sent) {
  guard_.confirm(sent);
  append_.unsettled = false;
  committed_ = append_.end;
  last_ = append_.id;
  just_committed_ = true;
  context_.stats.appends.add();
  for (const etcd::Operation& operation : append_.txn.then) {
    context_.stats.append_bytes.add(operation.value.size());
  }
}

}  // namespace lockd
