// Decides that a leader is gone: nothing of what it touches has changed for long enough, while etcd
// itself was answering.
//
// Time in which etcd is away or slow does not count, so trouble in etcd never deposes a leader. A
// leader relies on the reverse: as long as less than `detect` has passed since it sent something
// that succeeded, nobody can have taken its id. For what it sent changed what is seen, and the
// window of whoever takes its place began after that. `detect` is the leader's, whoever watches it.
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

  // From now on it is that long: another leads, who counts on that.
  void use(Duration detect) { detect_ = detect; }

  void saw(const LeaderObservation& observation, Time asked, Time answered) {
    if (answered - asked > detect_ / 2) return saw_nothing();
    if (!since_.has_value() || observation != observation_) {
      observation_ = observation;
      since_ = answered;
      unchanged_ = {};
    }
    unchanged_ = asked > *since_ ? asked - *since_ : Duration::zero();
  }
  // No answer, or none in time.
  void saw_nothing() { since_.reset(); }

  // What has stood still for long enough; a campaign holds only if it still does.
  std::optional<LeaderObservation> dead() const {
    if (!since_.has_value() || observation_.leader == 0 || unchanged_ < detect_) return {};
    return observation_;
  }

 private:
  Duration detect_;
  LeaderObservation observation_{};
  std::optional<Time> since_{};  // when it was first seen so, and without a gap since
  Duration unchanged_{};
};

}  // namespace lockd
