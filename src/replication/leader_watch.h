// LeaderWatch observes the chain's keys beside the Follower's watch, every detect / 5: whether the
// leader is alive, whether the watch is complete, and whether this is still the same etcd.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockd/clock.h"
#include "replication/follower.h"
#include "replication/replication_context.h"

namespace lockd {

// The revisions at which the leader's three keys were modified.
struct LeaderObservation {
  etcd::Revision leader = 0;
  etcd::Revision head = 0;
  etcd::Revision heartbeat = 0;

  friend bool operator==(const LeaderObservation&, const LeaderObservation&) = default;
};

// Detects that the leader is dead: none of its keys has changed for `detect`, its own, while etcd
// answered. Time in which etcd is unavailable or slow does not count, so a fault of etcd never
// deposes a leader. The leader depends on the reverse: no other node can have replaced it until
// `detect` after it sent its last successful write, because that write changed what the others
// observe.
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

// How far the Follower was behind etcd at the last observation.
struct ChainLag {
  std::uint64_t behind = 0;     // changes that were not applied
  etcd::Revision newest = 0;    // of the change that it has to apply
  std::optional<Time> since{};  // when it learned of that
  bool caught_up = false;       // it had applied the whole chain at least once
  BatchId base{};               // the ends of the chain
  BatchId head{};
};

class LeaderWatch {
 public:
  LeaderWatch(ReplicationContext& context, const Clock& clock, Follower& follower)
      : context_(context),
        clock_(clock),
        follower_(follower),
        detector_(context.timeouts.detect()) {}

  // Returns when to call again unless etcd answers before.
  Time turn(Time now) {
    update_lag(lag_.newest, now);
    return observe(now);
  }
  // The same while the chain is unreadable: only a new base is of interest.
  Time turn_unreadable(Time now);
  // Observes by the detect of a new leader. At once, because the next observation was scheduled by
  // the detect of the last one.
  void restart() {
    detector_.use(context_.timeouts.detect());
    next_ = {};
  }
  // This node is elected: it is not behind any more, and late answers do not count.
  void stop() {
    lag_.behind = 0;
    lag_.since.reset();
    in_flight_since_.reset();
  }

  // Why the journal has to read the chain again from the beginning; empty unless it has.
  const std::string& over() const { return over_; }
  const ChainLag& lag() const { return lag_; }
  std::optional<LeaderObservation> dead() const { return detector_.dead(); }

 private:
  Time observe(Time now);
  void on_observation(const etcd::Answer& answer, Time sent, etcd::Revision known);
  bool is_of_another_store(const etcd::Answer& answer, etcd::Revision known) const;
  void update_lag(etcd::Revision newest, Time now);

  ReplicationContext& context_;
  const Clock& clock_;
  Follower& follower_;
  Detector detector_;
  ChainLag lag_;
  std::string over_;
  std::optional<Time> in_flight_since_{};
  Time next_{};
  etcd::Revision newest_seen_ = 0;
  int times_behind_ = 0;  // consecutive observations that were ahead of the watch
  std::optional<Time> reads_again_at_{};
};

}  // namespace lockd
