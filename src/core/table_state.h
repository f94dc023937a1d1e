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
#include "core/indexes.h"
#include "core/key_index.h"
#include "core/key_request.h"
#include "core/key_set.h"
#include "core/session_index.h"
#include "core/table_limits.h"
#include "core/table_stats.h"
#include "core/timer_queue.h"
#include "lockd/journal.h"
#include "lockd/requests.h"

namespace lockd {

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

// The fences of one table.
struct FenceCounter {
  Fence last;        // of the latest grant
  Fence raised = 0;  // `last` when the journal last raised it
  // `last` when find() last began a call. A call never ends a hold that it granted itself, so the
  // views in the hold's event stay valid until the caller collects the effects.
  Fence known = 0;

  bool has_next() const { return last < kFenceMax; }
  // No grant will have a fence up to and including this one.
  void raise(Fence floor) { last = raised = std::max(last, floor); }
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
  Time now() const { return now_; }
  void set_now(Time now) { now_ = std::max(now_, now); }
  bool is_late() const { return late_; }
  TimerQueue& timers() { return timers_; }
  const TimerQueue& timers() const { return timers_; }

  // Keys.

  // The caller must grant or queue something at once: an unused key would not be among the idle
  // keys, and never be forgotten.
  Key& create(Kind kind, std::string_view name, KeyUnit unit);
  // Precondition: idle. The key's unit stays taken.
  void forget(Key& key);
  // After a hold has ended or the head of the queue has left: grants to the waiters that now fit,
  // or makes the key idle.
  void grant_next(Key& key);

  // Holds.

  // The hold with this fence; find_known() ignores holds granted during this call, which no caller
  // can know.
  Hold* find_hold(const Key* key, Fence fence) const;
  Hold* find_known(const Key* key, Fence fence) const {
    return fence <= fences_.known ? find_hold(key, fence) : nullptr;
  }
  // The hold of a holder that repeats its request, or null.
  Hold* find_own(const Key& key, const Holder& holder) const;
  // Grants a request that may enter. The caller has admitted it.
  Hold& grant(Key& key, const KeyRequest& request, Fence fence);
  // Grants to a place. The place stays in the queue, without a holder: the caller removes it.
  Hold& grant(QueuePlace& place, Fence fence);
  // Adds a hold without a lease and without events. The caller has taken its unit.
  Hold& add_hold(Key& key, StoredHolder holder, std::uint32_t takes, Fence fence, Duration ttl);
  // Removes a hold without events. grant_next() must follow.
  void remove_hold(Hold& hold);
  // Moves the lease to now + ttl.
  void renew(Hold& hold, Duration ttl) { move_deadline(hold, now_ + limits_.capped(ttl)); }
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
  Outcome why_not_held(const Key* key, const KeyHold& id) const;
  // Describes the key, and `hold` or its latest hold.
  Conflict explain(const Key& key, const Hold* hold = nullptr) const;
  // The event that recreates the hold.
  Event granted(const Hold& hold) const;

  // The queue.

  // A secret's place, or null. A name may have several places, each for a request of its own.
  QueuePlace* find_place(const Key& key, const Holder& holder) const;
  // Adds a place at the end. The caller has admitted the request.
  QueuePlace& join(Key& key, const KeyRequest& request, std::unique_ptr<QueuePlace> place);
  // Sets the listener of the wait, and its end.
  void start_wait(QueuePlace& place, Duration wait, Listener* listener, std::uint64_t id);
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
  // Where the search for the position of the next replayed hold starts.
  void set_replayed(const Hold* hold) { replayed_ = hold; }

  // The parts.

  const TableOptions& options() const { return options_; }
  TableLimits& limits() { return limits_; }
  const TableLimits& limits() const { return limits_; }
  FenceCounter& fences() { return fences_; }
  const FenceCounter& fences() const { return fences_; }
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
  void arm(Timer& timer, Duration after);
  // Grants to as many waiters at the head of the queue as fit.
  void grant_waiters(Key& key);
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
  ClientNames clients_{options_.hash_key};
  KeyIndex index_;
  HoldIndex hold_index_{options_.hash_key};
  PlaceIndex places_{options_.hash_key};
  SessionIndex sessions_;
  TimerQueue timers_;
  IdleKeys idle_;
  Effects effects_;
  TableStats stats_{effects_.key_events, clients_, {options_.history_size, options_.refusals}};
  TableLimits limits_;
  FenceCounter fences_;
  Time now_;
  bool late_ = false;       // advance() left something that is due
  std::uint64_t lags_ = 0;  // how often it did so after it had caught up; numbers KeyExtras::lag
  const Hold* replayed_ = nullptr;  // where the next replayed hold of its key probably belongs
  SessionId ending_ = 0;
};

}  // namespace lockd
