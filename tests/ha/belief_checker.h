// What clients believe, from what they were told: that they hold a key until a time. Nobody knows
// of the chain here, nor of the nodes.
//
//   holders-bounded   no more clients believe at once than the limit
//   fences-rise       of a key, a grant that is told has a larger fence than those told before
//   lease-honoured    no lease is said to have run out before its holder's belief ends
//   nothing-forgotten what is read of a key is not older than what was told before it was asked
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/testing/chance.h"
#include "crash/holds.h"
#include "lockd/journal.h"

namespace lockd::ha_test {

class BeliefChecker {
 public:
  struct Belief {
    std::string owner;
    SessionId session = 0;
    Time until{};
    Duration ttl{};  // of the grant, and so of renewals that say nothing else
  };

  // Throws Violation.
  void told_grant(const crash::HoldKey& key, Belief belief, std::uint64_t asked,
                  std::uint32_t limit, Time now);
  void told_renewal(const crash::HoldKey& key, Time until, std::uint64_t asked);
  void told_fence(Kind kind, const std::string& key, Fence told, Fence at_least) const;
  void check_expired(const Event& event, Time now) const;

  // Who asks for a lease anew believes no longer than that would be, until it is told.
  // Returns the number of the asking: what is told of an earlier one does not undo this.
  std::uint64_t asks(Kind kind, const std::string& key, const std::string& owner, Time until);
  // It is given up when that is asked for, whatever is told of it later.
  void gives_up(const crash::HoldKey& key) {
    beliefs_.erase(key);
    given_up_.insert(key);
  }
  void session_ends(SessionId session);

  // The largest that was told of a key.
  Fence largest(Kind kind, const std::string& key) const;
  const std::pair<const crash::HoldKey, Belief>* pick(Chance& chance, Time now);
  // Whether it asks for nothing, having a long lease.
  bool lets_run(Kind kind, const std::string& key, const std::string& owner, Chance& chance,
                Time now) const;
  std::size_t size() const { return beliefs_.size(); }

 private:
  struct Asking {
    std::uint64_t number = 0;
    Time until = Time::never();  // the least since the last that was told
  };

  static bool lets_run(const Belief& belief, Chance& chance, Time now);
  Time believable(const crash::HoldKey& key, const std::string& owner, Time until,
                  std::uint64_t asked);

  std::map<crash::HoldKey, Belief> beliefs_;
  std::set<crash::HoldKey> given_up_;
  std::map<crash::HoldKey, std::string> owners_;  // of all that was ever told
  std::map<std::pair<Kind, std::string>, Fence> largest_;
  std::map<std::tuple<Kind, std::string, std::string>, Asking> latest_;
  std::uint64_t asked_ = 0;
};

}  // namespace lockd::ha_test
