#include "replication/election.h"

#include <algorithm>

namespace lockd {

constexpr std::uint64_t kJitterNs = 50'000'000;

Time Election::turn(Time now, const ChainState& chain, std::optional<LeaderObservation> dead) {
  const etcd::Revision epoch = chain.leader.epoch;
  if (epoch != campaigned_in_) next_campaign_ = {};  // the last one has been decided
  if (dead.has_value() && dead->leader != epoch) dead.reset();
  if (campaigning_ || (epoch != 0 && !dead.has_value())) {
    campaign_at_.reset();
    return Time::never();
  }
  if (!campaign_at_.has_value()) campaign_at_ = campaign_time(chain, now);
  if (now < *campaign_at_) return *campaign_at_;
  campaign_at_.reset();
  next_campaign_ = now + context_.timeouts.detect() / 2;
  campaigned_in_ = epoch;
  campaign(dead.value_or(LeaderObservation{}));
  return Time::never();
}

// A short delay, so that nodes do not campaign at once and preferred ones are first. The node that
// the last leader has named campaigns at once, the others after detect.
Time Election::campaign_time(const ChainState& chain, Time now) {
  const Duration detect = context_.timeouts.detect();
  const bool is_led = chain.leader.epoch != 0;
  Time time = std::max(next_campaign_, now);
  if (!is_led && chain.successor == self_.node) return time;
  if (is_led || chain.successor.empty()) {
    deferring_since_.reset();
  } else if (!deferring_since_.has_value()) {
    deferring_since_ = now;
  }
  jitter_ = jitter_ * 6364136223846793005 + 1442695040888963407;
  time = time + ranks_below_ * (detect / 5);
  if (is_led) time = time + Duration((jitter_ >> 33) % kJitterNs);
  return deferring_since_.has_value() ? std::max(time, *deferring_since_ + detect) : time;
}

// The record's version is one that every known node can read.
void Election::campaign(const LeaderObservation& observation) {
  context_.stats.campaigns.add();
  campaigning_ = true;
  const EtcdKeys& keys = context_.keys;
  LeaderRecord record = self_;
  record.version = std::min(kChainVersion, membership_.version());
  etcd::Txn txn{.compare = {{keys.leader, observation.leader}},
                .then = {etcd::put(keys.leader, to_text(record)), etcd::erase(keys.successor)}};
  if (observation.leader != 0) {  // nothing has moved since it was found dead
    txn.compare.push_back({keys.head, observation.head});
    txn.compare.push_back({keys.heartbeat, observation.heartbeat});
  }
  const Duration deadline = context_.timeouts.retry_after();
  context_.client.execute(txn, deadline, [this](const etcd::Answer& answer) {
    campaigning_ = false;
    if (answer.status != etcd::Answer::Status::done) context_.errors.record(answer);
  });
}

}  // namespace lockd
