// Goes from server to server of a cluster until it has met the one that leads.
//
//   LeaderSearch search(cluster);                 // begins with who led last
//   for (;;) {
//     const Status status = ask(search.here());
//     if (!moves_on(status.outcome)) break;       // an answer, whatever it says
//     search.move_on(status, now);                // to the next, not before search.not_before()
//   }
//   search.found(search.here());
//
// From a server that did not answer, or does not lead, it goes to whom that one named as the
// leader, if that address was given; else to whom somebody else has found meanwhile; else to the
// next of the list: to each once a round. A new round begins at once, then after a pause, which
// grows. So whoever names a leader that is gone, or two who name each other, keep nobody from the
// third.
//
// An address that was not given is never gone to; verdict() tells of it.
//
// It neither waits nor asks: for blocking calls and for the background thread alike. Used by one
// thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cluster.h"
#include "lockd/client/boot_clock.h"
#include "lockd/client/outcome.h"
#include "lockd/types.h"

namespace lockd::client {

// Whether this is no answer, or that of a server that does not lead: another may give one.
bool moves_on(Outcome outcome) noexcept;

class LeaderSearch {
 public:
  using Time = BootClock::time_point;

  explicit LeaderSearch(const std::shared_ptr<Cluster>& cluster);
  // Begins with this one.
  LeaderSearch(std::shared_ptr<Cluster> cluster, std::size_t begin);

  Cluster& cluster() const { return *cluster_; }
  std::size_t here() const { return here_; }
  // When to ask who is here.
  Time not_before() const { return not_before_; }

  void move_on(const Status& why, Time now);
  // It is this one that leads: the next search begins with it, and this one anew.
  void found(std::size_t leader);

  // Whether in the last round everybody failed in a way that waiting does not cure.
  bool is_hopeless() const { return is_hopeless_; }
  // Why nobody was found. Precondition: move_on() was called.
  Status verdict() const;

 private:
  std::size_t choose(const Status& why);
  void begin_round(Time now);

  std::shared_ptr<Cluster> cluster_;
  std::size_t here_;
  std::vector<bool> tried_;  // in this round
  Time not_before_{};
  Duration pause_{};
  bool has_hope_ = false;  // of this round
  bool is_hopeless_ = false;
  std::optional<Status> failure_;  // the most telling
  std::string stranger_{};         // who was named as the leader, and was not given
};

}  // namespace lockd::client
