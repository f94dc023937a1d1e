#include "replication/term.h"

#include <algorithm>
#include <utility>

#include "replication/records.h"

namespace lockd {

using etcd::Answer;
using etcd::Operation;
using Status = Answer::Status;

namespace {

// Of the time that the last append took: by so much, at most, is the next one later.
constexpr int kGatherFraction = 4;
constexpr Duration kGatherMax = std::chrono::milliseconds(1);

Operation get_key_only(const std::string& key) {
  Operation get = etcd::get(key);
  get.keys_only = true;
  return get;
}

}  // namespace

Term::Term(etcd::Client& client, const EtcdKeys& keys, const TermOptions& options,
           ReplicationStats& stats, EtcdErrorLog& errors, etcd::Revision epoch, const BatchId& last,
           Position position)
    : client_(client),
      keys_(keys),
      options_(options),
      stats_(stats),
      errors_(errors),
      epoch_(epoch),
      previous_(last),
      revision_(epoch) {
  prepare(std::string(kBatchHeaderSize, '\0'), position, {});
}

Time Term::certain_until() const {
  return last_success_ == Time{} ? Time{} : last_success_ + options_.detect * 4 / 5;
}

Time Term::turn(Time now, AppendBuffer* pending) {
  if (!ended_.empty()) return Time::never();
  if (std::exchange(just_committed_, false)) {
    const Duration took = now - append_.first_sent;
    stats_.append_time.add(took);
    const bool others_wait = pending != nullptr && pending->size() > 0;
    gather_until_ = others_wait ? now + std::min(took / kGatherFraction, kGatherMax) : now;
  }
  gathering_ = now < gather_until_;
  if (is_idle() && pending != nullptr) {
    AppendBuffer::Taken taken = pending->take(false);
    std::move(taken.chunks.begin(), taken.chunks.end(), std::back_inserter(queue_));
  }
  if (!is_appending() && !queue_.empty()) {
    Chunk chunk = std::move(queue_.front());
    queue_.pop_front();
    prepare(std::move(chunk.bytes), chunk.position, now);
  }
  if (append_.unsettled && !append_.on_its_way && now >= append_.next_try) send(now);
  if (has_begun() && !append_.on_its_way && !heartbeat_in_flight_ && now >= heartbeat_due())
    heartbeat(now);

  Time next = gathering_ ? gather_until_ : Time::never();
  if (append_.unsettled && !append_.on_its_way) next = append_.next_try;
  if (has_begun() && !append_.on_its_way && !heartbeat_in_flight_)
    next = std::min(next, heartbeat_due());
  return next;
}

void Term::prepare(std::string bytes, Position position, Time now) {
  const BatchHeader header{.previous = previous_, .position = position, .made_at = now};
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
  }
  append_.on_its_way = true;
  append_.sent = now;
  append_.next_try = now + options_.retry;
  client_.execute(append_.txn, options_.rpc, [this](const Answer& answer) { settle(answer); });
}

void Term::settle(const Answer& answer) {
  append_.on_its_way = false;
  if (!ended_.empty()) return;
  full_ = answer.status == Status::no_space;
  errors_.take(answer);
  if (answer.status != Status::done) return;
  revision_ = std::max(revision_, answer.revision);
  if (!answer.succeeded) return settle_not_succeeded(answer);
  succeeded(append_.sent);
  commit_append();
}

void Term::settle_not_succeeded(const Answer& answer) {
  take_guarded(answer);
  if (!ended_.empty()) return;
  const std::vector<etcd::Entry>& head = answer.found.back();
  const std::string last = head.empty() ? "" : head.front().value;
  if (last == to_text(append_.id)) {
    // An earlier try has done it. This one has changed nothing, so nobody's patience with this
    // leader began anew when it was sent: what counts is when the earliest was.
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
  stats_.appends.add();
  just_committed_ = true;
  for (const Operation& operation : append_.txn.then) {
    stats_.append_bytes.add(operation.value.size());
  }
}

Time Term::heartbeat_due() const {
  return std::max(last_success_ + options_.detect / 5, heartbeat_sent_ + options_.retry);
}

void Term::heartbeat(Time now) {
  heartbeat_in_flight_ = true;
  heartbeat_sent_ = now;
  client_.execute(guarded({etcd::put(keys_.heartbeat, std::to_string(epoch_))}), options_.rpc,
                  [this](const Answer& answer) {
                    heartbeat_in_flight_ = false;
                    if (!ended_.empty() || !take_guarded(answer)) return;
                    stats_.heartbeats.add();
                    succeeded(heartbeat_sent_);
                  });
}

void Term::succeeded(Time sent) { last_success_ = std::max(last_success_, sent); }

etcd::Txn Term::guarded(std::vector<Operation> then) const {
  return {.compare = {{keys_.leader, epoch_}},
          .then = std::move(then),
          .otherwise = {get_key_only(keys_.leader)}};
}

bool Term::take_guarded(const Answer& answer) {
  if (answer.status != Status::done) return false;
  revision_ = std::max(revision_, answer.revision);
  if (answer.succeeded) return true;
  const std::vector<etcd::Entry>& leader = answer.found.front();
  if (leader.empty() || leader.front().modified != epoch_) ended_ = "another node leads";
  return false;
}

}  // namespace lockd
