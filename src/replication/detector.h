// Detects that the leader is dead: none of the keys that it updates has changed for `detect`, and
// etcd answered all that time.
//
// Time during which etcd is unavailable or slow does not count, so a fault of etcd never deposes a
// leader. The leader depends on the reverse: no other node can have replaced it until `detect`
// after it sent its last successful write, because that write changed what the others observe, and
// their windows began later. `detect` is the leader's own, on every node that observes it.
//
// A pure state machine: the caller passes observations and times.
#pragma once

#include <optional>

#include "replication/etcd_client.h"

namespace lockd {

// The revisions at which the leader's three keys were modified.
struct LeaderObservation {
  etcd::Revision leader = 0;
  etcd::Revision head = 0;
  etcd::Revision heartbeat = 0;

  friend bool operator==(const LeaderObservation&, const LeaderObservation&) = default;
};

class Detector {
 public:
  explicit Detector(Duration detect) : detect_(detect) {}

  // Sets the detect of a new leader.
  void use(Duration detect) { detect_ = detect; }

  void observe(const LeaderObservation& observation, Time asked, Time answered) {
    if (answered - asked > detect_ / 2) return reset();
    if (!since_.has_value() || observation != observation_) {
      observation_ = observation;
      since_ = answered;
      unchanged_ = {};
    }
    unchanged_ = asked > *since_ ? asked - *since_ : Duration::zero();
  }
  // etcd did not answer in time: the window begins again.
  void reset() { since_.reset(); }

  // The observation that has not changed for `detect`. A campaign compares it once more.
  std::optional<LeaderObservation> dead() const {
    if (!since_.has_value() || observation_.leader == 0 || unchanged_ < detect_) return {};
    return observation_;
  }

 private:
  Duration detect_;
  LeaderObservation observation_{};
  std::optional<Time> since_{};  // the first time it was observed, without a gap since
  Duration unchanged_{};
};

}  // namespace lockd
