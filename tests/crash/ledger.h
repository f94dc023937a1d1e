// What the clients know: what they asked for, what they were answered, and on which position each
// answer rests. It never looks at the journal's bytes nor at its events.
//
// An answer is told as soon as its position is durable; so whether a client has heard it by now is
// a question of how far durable() has come. What was asked for and not yet answered may or may not
// have happened.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/chance.h"
#include "crash/holds.h"
#include "lockd/journal.h"

namespace lockd::crash {

class Ledger {
 public:
  static constexpr Position kTold = 0;
  static constexpr Position kNotCommitted = UINT64_MAX;
  static constexpr Position kNeverTold = UINT64_MAX - 1;  // a crash came first

  struct Lease {
    Position told_at;
    Time expires_at;
    bool is_least = false;  // of a set, whose keys may have longer leases than its shortest

    bool is(Time expires) const { return is_least ? expires_at <= expires : expires_at == expires; }
  };
  struct Entry {
    std::string owner;
    SessionId session = 0;
    std::vector<Lease> leases;  // as granted, and as renewed since
    bool end_asked = false;
    Position end_told_at = kNotCommitted;

    bool is_known(Position durable) const { return leases.front().told_at <= durable; }
    // From the last that its owner was told of on: it has one of these.
    std::span<const Lease> possible_leases(Position durable) const;
  };

  // Answers. Those of an open batch are not committed.
  void granted(const HoldKey& key, const std::string& owner, SessionId session, Time expires_at,
               Position told_at = kNotCommitted, bool is_of_set = false);
  void renewed(const HoldKey& key, Time expires_at);
  void asked_to_end(const HoldKey& key) {
    entries_.at(key).end_asked = true;
    touched(entries_.at(key).owner, key);
  }
  void ended(const HoldKey& key) { end_told_now_.push_back(key); }
  // Several keys in one step, whether it is granted at once, later or never. The fences of the keys
  // are yet to come. Until one of them is touched alone, all are held or none.
  void asked_for_all(const std::string& owner, const std::vector<HoldKey>& keys);
  void touched(const std::string& owner, const HoldKey& key);
  // Everything of it, told or not.
  void session_ends(SessionId session);
  // The answers of the open batch rest on `position`.
  void commit(Position position);

  // What its owner has under the fence of `key`, and knows of.
  std::vector<HoldKey> granted_with(const HoldKey& key, Position durable) const;
  // A hold that its owner knows of and has not given up.
  const std::pair<const HoldKey, Entry>* pick(Chance& chance, Position durable) const;

  // Throws Violation unless all that was told by now is in force.
  void check(const Holds& recovered, Position durable, Time now) const;
  // The largest fence that anybody was told.
  Fence largest_fence(Position durable) const;

  // Forgets what no longer tells anything, so that to check stays cheap.
  void prune(Position durable, Time now);
  // A crash: what was not told by then will never be, and sessions are gone.
  void restart(Position durable);
  // What was told may have been undone, but for the fences.
  void forget(Position durable);

 private:
  static void check(const HoldKey& key, const Entry& entry, const Held* held, Position durable,
                    Time now);

  struct SetAsked {
    std::string owner;
    std::vector<HoldKey> keys;
    Fence last;  // that it had before of any of them, and whose end may be undone
  };
  static void check(const SetAsked& set, const Holds& recovered, Time now);

  std::map<HoldKey, Entry> entries_;
  std::vector<SetAsked> sets_;  // the latest
  std::vector<HoldKey> end_told_now_;
  Fence largest_pruned_ = 0;
};

}  // namespace lockd::crash
