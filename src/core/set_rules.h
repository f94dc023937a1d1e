// SetRules: the rules for a request that names several keys. It is granted all of them in one step,
// under one fence and one lease, or none.
//
// A set that has to wait joins the queue of each of its keys in one step. It is granted when it is
// at the head of all of these queues and all keys have room. It holds no key before that. No
// request overtakes another, so a key can be free while the head of its queue waits for another
// key.
//
// Sets cannot deadlock. Each joins all of its queues in one step, so any two sets stand in the same
// order in every queue that they share. A set waits only for holds and for sets that joined
// earlier; the earliest set waits only for holds.
//
// After the grant each key has an ordinary hold. No record says that the holds belong together.
//
// Invariants, besides those of LockTable:
//   all-or-none   a set is granted, or ended, with all of its keys
//   no-circle     no set waits for itself by way of others
//
// The keys may live in several tables; the caller holds the lock of each. Like LockTable, SetRules
// has no clock and no thread. It calls `flush` between steps: the effects that the tables have at
// that moment belong together and become durable as one. The caller flushes the last step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/key_set.h"
#include "core/lock_table.h"

namespace lockd {

class SetRules {
 public:
  // The table of one of the keys.
  struct TableRef {
    LockTable* table;
    std::uint32_t number;  // of the table in the engine
    std::optional<std::uint64_t> key_hash{};
  };
  using Flush = std::function<void()>;

  SetRules(Time now, Flush flush) : now_(now), flush_(std::move(flush)) {}

  // What is wrong with a request, whatever the tables hold; or ok.
  static Outcome check(const AcquireRequest& request);
  static Outcome check(const HoldId& id);

  // The functions below expect a request that check() accepts, and in `refs` one table for each
  // key.

  // Grants, queues or refuses the request. Keys that do not exist yet take `units` and then units
  // of the budget; max_keys if those do not suffice. The slot in the reply is that of the first
  // key's place. `conflicts`, if not null, receives each key that is in the way.
  LockTable::Reply acquire(const AcquireRequest& request, std::span<const TableRef> refs,
                           Listener* listener, std::uint64_t id, std::vector<KeyUnit>& units,
                           std::vector<Conflict>* conflicts);
  // Appends the keys that are in the way now.
  void explain(const AcquireRequest& request, std::span<const TableRef> refs,
               std::vector<Conflict>& conflicts);

  // Renews all of the holds, or none; then `item` is the first key without such a hold.
  LockTable::Reply renew(const HoldId& id, std::span<const TableRef> refs,
                         std::optional<Duration> ttl, std::size_t* item);
  // Releases the holds that are there: see ReleaseResult::released.
  std::uint64_t release(const HoldId& id, std::span<const TableRef> refs);
  // Withdraws all of the holds, or none: see LockTable::withdraw.
  bool withdraw(const HoldId& id, std::span<const TableRef> refs);

  // Processes a set from Effects::sets: grants it if it is ready, or removes the remaining places
  // if it has ended. `refs` has one table for each of its parts.
  void settle(KeySet& set, std::span<const TableRef> refs);

  // Checks the waiting sets of `tables`, which are all tables of the engine. Returns the name of a
  // broken invariant and the key that breaks it, or an empty string.
  static std::string check_all(std::span<const LockTable* const> tables);

 private:
  // One key of the request.
  struct Part {
    bool fits_limit() const;
    bool may_enter() const;
    Hold* own() const;                         // the asking holder's hold, or null
    bool is_taken_by(const Hold& hold) const;  // in the mode, or with the permits, of the request

    TableState* table;
    KeyRequest request;
    Key* key;  // null: it does not exist yet
  };
  using PartHolds = std::vector<Hold*>;

  void find(std::span<const TableRef> refs, const AcquireRequest& request);
  PartHolds find_holds(const HoldId& id, std::span<const TableRef> refs);
  PartHolds own_holds() const;
  std::optional<LockTable::Reply> repeat(std::vector<Conflict>* conflicts);
  Outcome outcome_for(const PartHolds& own) const;
  bool are_one_grant(const PartHolds& holds) const;
  Grant grant_again(const PartHolds& holds, Duration ttl);
  Grant shortest_grant(const PartHolds& holds) const;
  Outcome queue_refusal(const Listener* listener);
  Outcome admit(std::vector<KeyUnit>& units);
  void make_keys(std::vector<KeyUnit>& units);
  Fence next_fence() const;
  Grant grant();
  LockTable::Reply join(std::span<const TableRef> refs, Listener* listener, std::uint64_t id);
  void list(std::vector<Conflict>* conflicts) const;
  void end(const PartHolds& holds, EndCause cause);

  void decide(KeySet& set, std::span<const TableRef> refs);
  void grant(KeySet& set);
  void end(KeySet& set, Outcome why, const Grant& grant);

  Time now_;
  const Flush flush_;
  std::vector<Part> parts_;
};

}  // namespace lockd
