#include "replication/leader_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockd {
namespace {

constexpr int kTimesBehindMax = 4;
// The pause before an unreadable chain is read again; it doubles each time.
constexpr Duration kReadAgainMin = std::chrono::seconds(1);
constexpr Duration kReadAgainMax = std::chrono::minutes(1);

etcd::Operation get_key_only(const std::string& key) {
  etcd::Operation get = etcd::get(key);
  get.keys_only = true;
  return get;
}

}  // namespace

// The chain stays unreadable until an operator acts: a snapshot replaces the unreadable part.
Time LeaderWatch::turn_unreadable(Time now) {
  const ChainFailure& failure = follower_.failure();
  if (!reads_again_at_.has_value()) {
    context_.stats.unreadable.add();
    const std::uint32_t before = context_.stats.unreadable_in_a_row.fetch_add(1);
    const Duration pause = std::min(kReadAgainMin * (1 << std::min(before, 6U)), kReadAgainMax);
    reads_again_at_ = now + pause;
    using std::chrono::seconds;
    context_.log(Severity::error,
                 "cluster: " + failure.why +
                     "; this server can neither follow nor lead, and reads it again in " +
                     std::to_string(std::chrono::duration_cast<seconds>(pause).count()) + " s");
  }
  const Time next = observe(now);
  if (!failure.batch.is_none() && lag_.base > failure.batch) {
    over_ = "the unreadable part of the chain is needed no more";
  } else if (now >= *reads_again_at_) {
    over_ = "the unreadable chain is read again";
  }
  return std::min(*reads_again_at_, next);
}

void LeaderWatch::update_lag(etcd::Revision newest, Time now) {
  const etcd::Revision applied = follower_.chain().revision;
  if (applied >= lag_.newest) {
    lag_.newest = newest;
    lag_.since.reset();
  }
  if (applied < lag_.newest && !lag_.since.has_value()) lag_.since = now;
}

// One observation is in flight at a time. A late answer still counts for the latency of etcd.
Time LeaderWatch::observe(Time now) {
  const Duration detect = context_.timeouts.detect();
  if (in_flight_since_.has_value() && now >= *in_flight_since_ + detect / 2) {
    in_flight_since_.reset();
    detector_.reset();
    context_.client.switch_member();
  }
  if (in_flight_since_.has_value()) return *in_flight_since_ + detect / 2;
  if (now < next_) return next_;
  in_flight_since_ = now;
  next_ = now + detect / 5;
  const EtcdKeys& keys = context_.keys;
  const etcd::Revision known = std::max(newest_seen_, follower_.chain().revision);
  context_.execute(
      {.then = {get_key_only(keys.leader), etcd::get(keys.head), get_key_only(keys.heartbeat),
                etcd::get(keys.base)}},
      [this, now, known](const etcd::Answer& answer) { on_observation(answer, now, known); });
  return now + detect / 2;
}

void LeaderWatch::on_observation(const etcd::Answer& answer, Time sent, etcd::Revision known) {
  const bool is_done = answer.status == etcd::Answer::Status::done;
  const Time now = clock_.now();
  if (is_done) context_.timeouts.record(sent, now);
  if (in_flight_since_ != sent) return;
  in_flight_since_.reset();
  context_.errors.record(answer);
  if (!is_done) return detector_.reset();
  if (is_of_another_store(answer, known)) {
    over_ = etcd::kAnotherStore;
    return;
  }
  newest_seen_ = answer.revision;
  const auto entry = [&](std::size_t i) {
    return answer.found[i].empty() ? etcd::Entry{} : answer.found[i].front();
  };
  lag_.head = parse_batch_id(entry(1).value).value_or(BatchId{});
  lag_.base = parse_batch_id(entry(3).value).value_or(BatchId{});
  if (follower_.failure().unreadable) return;
  const LeaderObservation observation{entry(0).modified, entry(1).modified, entry(2).modified};
  detector_.observe(observation, sent, now);

  const ChainState& chain = follower_.chain();
  const etcd::Revision newest = std::max(observation.leader, observation.head);
  lag_.behind = static_cast<std::uint64_t>(std::max(newest - chain.revision, etcd::Revision{0}));
  update_lag(newest, now);
  if (lag_.behind != 0 || observation.leader != chain.leader.epoch) {
    if (++times_behind_ < kTimesBehindMax) return;
    times_behind_ = 0;
    return follower_.reopen_watch();
  }
  times_behind_ = 0;
  follower_.advance(answer.revision);
  if (std::exchange(lag_.caught_up, true)) return;
  context_.stats.unreadable_in_a_row = 0;
  context_.log(Severity::info,
               "cluster: has caught up, at revision " + std::to_string(chain.revision));
}

// etcd's revision never decreases, whichever member answers: an answer is at least as new as what
// was known when the request was sent. And the watch delivers the puts of the leader's key in
// order.
bool LeaderWatch::is_of_another_store(const etcd::Answer& answer, etcd::Revision known) const {
  const ChainState& chain = follower_.chain();
  if (answer.store != chain.store || answer.revision < known) return true;
  if (follower_.failure().unreadable) return false;  // it may have missed a leader
  const etcd::Revision leader = answer.found[0].empty() ? 0 : answer.found[0].front().modified;
  return leader > chain.leader_changed && leader < chain.revision;
}

}  // namespace lockd
