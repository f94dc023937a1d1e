// The rules for several keys in one step: all of them or none, under one fence and one lease.
//
// A set that has to wait joins the queue of each of its keys in one step, and is granted in one
// step, when it is the first in all of them and all have room. No part of it is ever held before.
// Nobody is overtaken, so a key may stand free while the first of its queue waits for another key.
//
// Requests that wait never wait for each other in a circle. Each joins all of its queues in one
// step, so any two stand in the same order in every queue that they share: that of their joining.
// Whoever waits, waits for holds and for requests that joined earlier; the earliest, for holds
// alone.
//
// After the grant each key has an ordinary hold, and nothing knows that they came together.
//
// Its invariants, besides those of the tables:
//   all-or-none   a set is granted, or ended, with all of its keys
//   no-circle     as above
//
// The keys may live in several tables. They stand still meanwhile: whoever calls has the lock of
// each. Like a table it has no clock and no thread, and calls nobody but `flush`: what the tables'
// effects have by then happened together, and is to be durable as one.
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
  // Where one of the keys lives.
  struct TableRef {
    LockTable* table;
    std::uint32_t number;  // the table's
    std::optional<std::uint64_t> key_hash{};
  };
  using Flush = std::function<void()>;

  SetRules(Time now, Flush flush) : now_(now), flush_(std::move(flush)) {}

  // What is wrong with a request, whatever the tables have; or ok.
  static Outcome check(const AcquireSetRequest& request);
  static Outcome check(const SetId& id);

  // In all of these `places` has one for each key, and the request is good.

  // Grants, queues or refuses. Keys that are not there yet take `units` or, when there are not
  // enough, the budget's; max_keys: that has none either. The slot in the reply is of the first
  // key's place. `conflicts`, if given, tells of each key that is in the way.
  LockTable::Reply acquire(const AcquireSetRequest& request, std::span<const TableRef> refs,
                           Listener* listener, std::uint64_t id, std::vector<KeyUnit>& units,
                           std::vector<SetConflict>* conflicts);
  // Which keys are in the way by now.
  void explain(const AcquireSetRequest& request, std::span<const TableRef> refs,
               std::vector<SetConflict>& conflicts);

  // All or none; `item`, if not, is the first that is not held.
  LockTable::Reply renew(const SetId& id, std::span<const TableRef> refs,
                         std::optional<Duration> ttl, std::size_t* item);
  // Those that are held: one flag for each key.
  std::vector<bool> release(const SetId& id, std::span<const TableRef> refs);
  // All or none: see LockTable::withdraw.
  bool withdraw(const SetId& id, std::span<const TableRef> refs);

  // A set of a table's effects: it is granted if its turn has come, or what is left of it goes.
  // `places` has one for each of its parts.
  void settle(KeySet& set, std::span<const TableRef> refs);

  // Looks at everything that waits in these tables, which are all that there are: the name of a
  // broken invariant and what breaks it, or an empty string.
  static std::string check_all(std::span<const LockTable* const> tables);

 private:
  struct Part {
    Part(LockTable* table, const AcquireRequest& request, Key* key)
        : table(table), request(request), key(key) {}

    bool fits_limit() const;
    bool may_enter() const;
    Hold* own() const;                         // the asker's, or null
    bool is_taken_by(const Hold& hold) const;  // in the mode, or with the permits, that it asks for

    LockTable* table;
    AcquireRequest request;
    Key* key;  // null: it is not there yet
  };

  void find(std::span<const TableRef> refs, const std::vector<SetItem>& keys,
            const AcquireRequest& common);
  std::vector<Hold*> find_holds(const SetId& id, std::span<const TableRef> refs);
  std::optional<LockTable::Reply> ask_again(std::vector<SetConflict>* conflicts);
  Outcome outcome_for(const std::vector<Hold*>& own) const;
  bool are_one_grant(const std::vector<Hold*>& holds) const;
  Grant refresh(const std::vector<Hold*>& holds, std::optional<Duration> ttl);
  Grant grant_again(const std::vector<Hold*>& holds, Duration ttl);
  Outcome queue_refusal(const Listener* listener);
  Outcome admit(std::vector<KeyUnit>& units);
  void make_keys(std::vector<KeyUnit>& units);
  Fence next_fence() const;
  Grant grant();
  LockTable::Reply join(std::span<const TableRef> refs, Listener* listener, std::uint64_t id);
  void list(std::vector<SetConflict>* conflicts) const;
  void end(const std::vector<Hold*>& holds, EndCause cause);

  void decide(KeySet& set, std::span<const TableRef> refs);
  void grant(KeySet& set);
  void end(KeySet& set, Outcome why, const Grant& grant);

  Time now_;
  const Flush flush_;
  std::vector<Part> parts_;
};

}  // namespace lockd
