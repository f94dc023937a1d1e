// Decides that a leader is gone: nothing of what it touches has changed for long enough, while etcd
// itself was answering.
//
// Time in which etcd is away or slow does not count, so trouble in etcd never deposes a leader. A
// leader relies on the reverse: as long as less than `detect` has passed since it sent something
// that succeeded, nobody can have taken its id. For what it sent changed what is seen, and the
// window of whoever takes its place began after that.
//
// Pure: answers and times go in.
#pragma once

#include <optional>

#include "replication/etcd_client.h"

namespace lockd {

// The revisions at which the three were modified.
struct LeaderObservation {
  etcd::Revision leader = 0;
  etcd::Revision head = 0;
  etcd::Revision heartbeat = 0;

  friend bool operator==(const LeaderObservation&, const LeaderObservation&) = default;
};

class Detector {
 public:
  explicit Detector(Duration detect) : detect_(detect) {}

  void saw(const LeaderObservation& observation, Time asked, Time answered) {
    if (answered - asked > detect_ / 2) return saw_nothing();
    const bool has_moved =
        observation.head != observation_.head || observation.heartbeat != observation_.heartbeat;
    if (has_moved && observation.leader == observation_.leader) alive_ = observation.leader;
    if (!since_.has_value() || observation != observation_) {
      observation_ = observation;
      since_ = answered;
      unchanged_ = {};
    }
    unchanged_ = asked > *since_ ? asked - *since_ : Duration::zero();
  }
  // No answer, or none in time.
  void saw_nothing() { since_.reset(); }

  // Something has moved while this one led.
  bool has_seen_alive(etcd::Revision leader) const { return leader != 0 && leader == alive_; }

  // What has stood still for long enough; a campaign holds only if it still does.
  std::optional<LeaderObservation> dead() const {
    if (!since_.has_value() || observation_.leader == 0 || unchanged_ < detect_) return {};
    return observation_;
  }

 private:
  const Duration detect_;
  LeaderObservation observation_{};
  std::optional<Time> since_{};  // when it was first seen so, and without a gap since
  Duration unchanged_{};
  etcd::Revision alive_ = 0;
};

}  // namespace lockd
