// TableState: the keys, holds, queue places and timers of one table, and the changes that can be
// made to them.
//
// LockTable and SetRules decide what becomes of a request and use these changes to do it. Each
// change keeps the invariants of lock_table.h, records its events in effects(), and is counted in
// stats(), except where a comment says what the caller has to do next. Nothing here fails: memory
// that runs out ends the process.
//
// A pure state machine without a clock. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/client_names.h"
#include "core/history.h"
#include "core/hold_budget.h"
#include "core/indexes.h"
#include "core/key_budget.h"
#include "core/key_index.h"
#include "core/key_set.h"
#include "core/session_index.h"
#include "core/table_stats.h"
#include "core/timer_queue.h"
#include "lockd/journal.h"
#include "lockd/requests.h"

namespace lockd {

struct TableOptions {
  std::uint32_t waiters_max = 0;  // per key; 0 is no limit
  // A request that does not wait is refused with max_waiters, not with held, at a full queue.
  bool refuses_tries_at_full_queue = false;
  // A semaphore keeps its limit while it is idle: a request that names another limit is refused
  // until the key is forgotten. Otherwise the next request for an idle key sets the limit.
  bool keeps_idle_limits = false;
  Duration ttl_max{};    // a longer lease is granted this much; zero is no limit
  Fence last_fence = 0;  // the first grant gets the next one
  HashKey hash_key{};
  bool events = true;             // false: no journal reads them
  std::size_t history_size = 0;   // bytes of history to keep; 0: none
  RateLimit* refusals = nullptr;  // limits how many refusals of all tables are recorded; null: none
  // A wait, or a hold, of this age is recorded as slow; zero: never.
  Duration slow_wait{};
  Duration slow_hold{};
};

// What operations caused, beyond their replies.
struct Effects {
  std::vector<Event> events;             // for the journal, in order
  std::vector<WaitResult> wait_results;  // waits that ended; listeners learn of them once durable
  std::vector<KeyEvent> key_events;      // for observers, in order
  // Sets that may be ready to be granted, or that have ended: for SetRules::settle(), with the
  // locks of all their tables.
  std::vector<std::shared_ptr<KeySet>> sets;
  Time earliest = Time::never();  // the earliest deadline that was set

  void clear() {
    events.clear();
    wait_results.clear();
    key_events.clear();
    sets.clear();
    earliest = Time::never();
  }
};

// The holder has the key, or waits for it, otherwise than it now asks.
inline Outcome mismatch_of(Kind kind) {
  return kind == Kind::lock ? Outcome::mode_mismatch : Outcome::permits_mismatch;
}

// The time of a call and, if the caller has it, the hash of its key under the table's hash_key.
struct At {
  At(Time now) : now(now) {}  // NOLINT: a time is enough
  At(Time now, std::uint64_t key_hash) : now(now), key_hash(key_hash) {}

  Time now;
  std::optional<std::uint64_t> key_hash;
};

class TableState {
 public:
  // How much of what is due elsewhere an operation ends in passing.
  static constexpr int kStepsPerCall = 16;

  // The budgets are shared by the tables of an engine and outlive them. `holds` may be null: no
  // limit.
  TableState(const TableOptions& options, KeyBudget& budget, HoldBudget* holds);
  ~TableState();
  TableState(const TableState&) = delete;
  TableState& operator=(const TableState&) = delete;

  // Time.

  // Ends leases and waits that are due, in the order of their deadlines, in about `budget` steps.
  // True when nothing due is left.
  bool advance(Time now, int budget);
  // Begins a call: advances, ends everything due at this key, and returns the key or null.
  Key* find(At at, Kind kind, std::string_view name);
  // Ends everything due at this key if advance() left something due in the table.
  void catch_up(Key& key) {
    if (late_) end_due_at(key);
  }
  void arm(Timer& timer, Duration after);
  Time now() const { return now_; }
  void set_now(Time now) { now_ = std::max(now_, now); }
  bool is_late() const { return late_; }
  TimerQueue& timers() { return timers_; }
  const TimerQueue& timers() const { return timers_; }

  // Admission.

  // Takes a unit for a hold or a place, or says why there is none and records the refusal.
  Outcome admit(const AcquireRequest& request, const Key* key);
  // Records that a cap refused the request. Returns `why`.
  Outcome refuse(const AcquireRequest& request, const Key* key, Outcome why);
  void record_refusal(const AcquireRequest& request, const Key* key, Outcome why, Time now);
  // A request must name the limit of this key. Otherwise it sets the limit.
  bool has_binding_limit(const Key& key) const { return options_.keeps_idle_limits || !key.idle(); }
  // A request that cannot be granted at once is refused because the queue is full.
  bool is_refused_by_queue(const Key& key, Duration wait) const {
    const bool is_try = wait == Duration::zero();
    return (!is_try || options_.refuses_tries_at_full_queue) && is_queue_full(key);
  }
  bool is_queue_full(const Key& key) const {
    return options_.waiters_max != 0 && key.waiters() >= options_.waiters_max;
  }
  Duration capped(Duration ttl) const {
    return options_.ttl_max == Duration::zero() ? ttl : std::min(ttl, options_.ttl_max);
  }

  // Keys.

  // The caller grants or queues something at once: a key that was never used is not kept.
  Key& create(Kind kind, std::string_view name, KeyUnit unit);
  // Precondition: idle. The key's unit stays taken.
  void forget(Key& key);
  // After a hold has ended or the head of the queue has left: grants to the waiters that now fit,
  // or makes the key idle.
  void grant_next(Key& key);
  // Grants to as many waiters at the head of the queue as fit.
  void grant_waiters(Key& key);

  // Holds.

  // The hold with this fence; find_known() ignores holds granted during this call, which no caller
  // can know.
  Hold* find_hold(const Key* key, Fence fence) const;
  Hold* find_known(const Key* key, Fence fence) const {
    return fence <= known_fence_ ? find_hold(key, fence) : nullptr;
  }
  // The hold of a holder that repeats its request, or null.
  Hold* find_own(const Key& key, const Holder& holder) const;
  // Grants a request that may enter. The caller has admitted it.
  Hold& grant(Key& key, const AcquireRequest& request, Fence fence);
  // Grants to a place. The place stays in the queue, without a holder: the caller removes it.
  Hold& grant(QueuePlace& place, Fence fence);
  // Adds a hold without a lease and without events. The caller has taken its unit.
  Hold& add_hold(Key& key, StoredHolder holder, std::uint32_t takes, Fence fence, Duration ttl);
  // Removes a hold without events. grant_next() must follow.
  void remove_hold(Hold& hold);
  // Moves the lease to now + ttl.
  void renew(Hold& hold, Duration ttl) { move_deadline(hold, now_ + capped(ttl)); }
  // Renews for a holder that repeats its request: neither the ttl nor the deadline moves back, as
  // the reply to the first request may have arrived.
  void extend(Hold& hold, Duration ttl);
  // Removes the hold with its events. grant_next() must follow.
  void end_hold(Hold& hold, EndCause cause, const AdminNote& note = {});
  // Gives the hold to the session that repeats the request. False if a later session has it.
  bool take_over(Hold& hold, const Holder& asker);
  // The hold stays until its lease ends and no longer belongs to its session.
  void leave_to_lease(Hold& hold);
  static Grant grant_of(const Hold& hold) {
    return {hold.fence, hold.ttl, hold.deadline, hold.holder.view().secret()};
  }
  // As grant_of(), with a ttl of at most what remains of the lease.
  Grant remaining_grant(const Hold& hold) const;
  // Why the key has no such hold of this holder.
  Outcome why_not_held(const Key* key, const HoldId& id) const;
  // Fills in who holds the key, if `conflict` is not null: `hold`, or the latest hold.
  void explain(const Key& key, Conflict* conflict, const Hold* hold = nullptr) const;
  // The event that recreates the hold.
  Event granted(const Hold& hold) const;

  // The queue.

  // A secret's place, or null. A name may have several places, each for a request of its own.
  QueuePlace* find_place(const Key& key, const Holder& holder) const;
  // Adds a place at the end. The caller has admitted the request.
  QueuePlace& join(Key& key, const AcquireRequest& request, std::unique_ptr<QueuePlace> place);
  // Waits at the place until `wait` has passed.
  void await(QueuePlace& place, Duration wait, Listener* listener, std::uint64_t id);
  // Ends the place without a grant of its own, and grants to the waiters behind it that now fit.
  void leave_queue(QueuePlace& place, Outcome why);
  // Ends the place; grant_next() must follow.
  void give_up(QueuePlace& place, Outcome why, const Grant& grant = {});
  // Removes the place without a result.
  void remove_place(QueuePlace& place);
  // As for a hold. A request that waits there ends as taken_over.
  bool take_over(QueuePlace& place, const Holder& asker);
  // After a name was granted a key: its other places there get the same grant if they ask for the
  // same, so that no holder waits for itself.
  void grant_same_owner(Hold& hold);
  // No place of this session is granted anything until it is 0 again.
  void set_ending(SessionId session) { ending_ = session; }
  // The last hold that a journal has granted or named: its successor follows it.
  void set_replayed(const Hold* hold) { replayed_ = hold; }

  // Fences.

  Fence last_fence() const { return last_fence_; }
  // No grant will have a fence up to and including this one.
  void raise_fence(Fence floor) { last_fence_ = raised_fence_ = std::max(last_fence_, floor); }
  Fence raised_fence() const { return raised_fence_; }
  bool has_fences() const { return last_fence_ < kFenceMax; }

  // The parts.

  const TableOptions& options() const { return options_; }
  KeyBudget& budget() { return budget_; }
  HoldUnits& units() { return units_; }
  const HoldUnits& units() const { return units_; }
  ClientNames& clients() { return clients_; }
  const ClientNames& clients() const { return clients_; }
  const KeyIndex& keys() const { return index_; }
  const PlaceIndex& places() const { return places_; }
  const HoldIndex& many_holds() const { return hold_index_; }
  const IdleKeys& idle() const { return idle_; }
  SessionIndex& sessions() { return sessions_; }
  const SessionIndex& sessions() const { return sessions_; }
  Effects& effects() { return effects_; }
  TableStats& stats() { return stats_; }
  const TableStats& stats() const { return stats_; }

 private:
  void end_due_at(Key& key);
  bool is_quiet(const Key& key) const;
  void on_timer(Timer& timer);
  Hold& grant(Key& key, StoredHolder holder, KnownClient client, std::uint32_t takes, Duration ttl,
              Fence fence);
  void move_deadline(Hold& hold, Time deadline);
  void settle(QueuePlace& place, Outcome outcome, const Grant& grant);
  bool end_set(QueuePlace& place, Outcome why);
  void link_owner(QueuePlace& place);
  void unlink_owner(QueuePlace& place);

  const TableOptions options_;
  KeyBudget& budget_;
  HoldUnits units_;
  ClientNames clients_{options_.hash_key};
  KeyIndex index_;
  HoldIndex hold_index_{options_.hash_key};
  PlaceIndex places_{options_.hash_key};
  SessionIndex sessions_;
  TimerQueue timers_;
  IdleKeys idle_;
  Effects effects_;
  TableStats stats_{effects_.key_events, clients_, {options_.history_size, options_.refusals}};
  Time now_;
  bool late_ = false;       // advance() left something that is due
  std::uint64_t lags_ = 0;  // how often it did so after it had caught up; numbers KeyExtras::lag
  Fence last_fence_;
  Fence raised_fence_ = 0;  // last_fence_ when the journal last raised it
  // last_fence_ when the call began. A call never ends a hold that it granted itself, so the views
  // in the hold's event stay valid until the caller collects the effects.
  Fence known_fence_ = 0;
  const Hold* replayed_ = nullptr;  // where the next replayed hold of its key probably belongs
  SessionId ending_ = 0;
};

}  // namespace lockd
