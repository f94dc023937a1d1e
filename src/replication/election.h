// Election decides when this node campaigns, and campaigns.
//
// A node campaigns if no node leads, or the leader that it follows is dead. The watch shows whether
// it has won.
#pragma once

#include <cstdint>
#include <optional>

#include "replication/leader_watch.h"
#include "replication/membership.h"
#include "replication/replication_context.h"

namespace lockd {

class Election {
 public:
  // Each rank below the best delays campaigns by detect / 5. `seed` is of the jitter.
  Election(ReplicationContext& context, const LeaderRecord& self, const Membership& membership,
           int ranks_below, std::uint64_t seed)
      : context_(context),
        self_(self),
        membership_(membership),
        ranks_below_(ranks_below),
        jitter_(seed) {}

  // `dead` is the observation of a dead leader, if any. Returns when to call again.
  Time turn(Time now, const ChainState& chain, std::optional<LeaderObservation> dead);

 private:
  Time campaign_time(const ChainState& chain, Time now);
  void campaign(const LeaderObservation& observation);

  ReplicationContext& context_;
  const LeaderRecord& self_;
  const Membership& membership_;
  const int ranks_below_;
  std::uint64_t jitter_;
  bool campaigning_ = false;
  Time next_campaign_{};
  etcd::Revision campaigned_in_ = 0;  // the epoch at the last campaign
  std::optional<Time> campaign_at_{};
  std::optional<Time> deferring_since_{};  // to a successor that the last leader has named
};

}  // namespace lockd
