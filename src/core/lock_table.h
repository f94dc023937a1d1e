// The rules: locks and counting semaphores with FIFO queues, leases and fences.
//
// Every key is a semaphore; a lock is a semaphore of one. A LockTable is a pure state machine: a
// call and a time go in, an answer comes out, and effects() tells what else happened: events for
// the journal and waits that ended. No clock, no thread, no randomness, no callback. What it does
// depends on the calls and their times alone.
//
// Its invariants, asserted by check():
//   holders-bounded      no grant makes the permits in use exceed the limit
//   shares-or-alone      a lock has one hold, or all that it has share it
//   first-come           a key's grants leave in the order of its queue, and nobody who comes later
//                        is granted it before them
//   fences-rise          every grant's fence is larger than all before it in this table; keys that
//                        are granted in one step have one
//   settled-once         a queued request ends exactly once
//   lease-honoured       no hold ends before its deadline unless its owner or an admin ends it
//   no-idle-waiter       a key with room for the first of its queue has an empty queue, or that
//                        waits for other keys too
//   replay-equals        apply() of all events gives the table that caused them, queues aside
//   failed-changes-nothing
//   bounded              keys by the budget, waiters per key by waiters_max, holds and places
//                        together by theirs
//   counted              what stats() says there is, is there
//
// Every operation first ends what has fallen due by `now`: at least everything of the key it is
// about, so an acquire at time t finds every lease that is due at t already over. `now` may be less
// than in an earlier call; the table takes the later time.
//
// What changes the table is noexcept, to the last allocation: memory that runs out in the middle
// of a change ends the process there, before anybody sees half of it. The journal has the rest.
//
// Not thread-safe: see Shard.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/client_names.h"
#include "core/history.h"
#include "core/hold_budget.h"
#include "core/indexes.h"
#include "core/key_budget.h"
#include "core/key_index.h"
#include "core/key_set.h"
#include "core/table_stats.h"
#include "core/timer_queue.h"
#include "lockd/journal.h"
#include "lockd/observer.h"
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
  bool events = true;  // false: nobody reads them
  // What is kept of what happened, in bytes; 0 is nothing.
  std::size_t history_size = 0;
  RateLimit* refusals = nullptr;  // of those that are recorded, over all tables; null: none
  // A wait, and a hold, that is as old as this is slow; zero: none is.
  Duration slow_wait{};
  Duration slow_hold{};
};

// What operations caused, beyond their answers.
struct Effects {
  std::vector<Event> events;             // for the journal, in order
  std::vector<WaitResult> wait_results;  // waits that ended; to be told once the events are durable
  std::vector<KeyEvent> key_events;      // for observers, in order; none while there is none
  // Sets whose turn may have come, or that are over: for SetRules::settle(), with the locks of all
  // their tables.
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

// What lasts longest, of what was looked at.
struct OldestEntries {
  struct Of {
    Kind kind = Kind::lock;
    std::string key{};  // empty: there is none
    Time since = Time::never();
  };
  struct Queue {
    Kind kind = Kind::lock;
    std::string key{};
    std::uint32_t waiters = 0;
  };
  Of wait{};
  Of hold{};
  Queue queue{};
};

// Where scan_ages() is. Starts at the beginning.
struct AgeCursor {
  Cursor keys{};
  std::uint32_t slot = 0;  // of the waiters, which come behind the keys
  bool done = false;
};

class LockTable {
 public:
  // The budgets are shared by the tables of an engine and outlive them. Without one of holds there
  // is no limit to them.
  LockTable(const TableOptions& options, KeyBudget& budget, HoldBudget* holds = nullptr);
  ~LockTable();
  LockTable(const LockTable&) = delete;
  LockTable& operator=(const LockTable&) = delete;

  // When a call is made; and the hash of its key under the table's own hash_key, if the caller has
  // it: whoever chose the table by it need not have it computed again.
  struct At {
    At(Time now) : now(now) {}  // NOLINT: a time is enough
    At(Time now, std::uint64_t key_hash) : now(now), key_hash(key_hash) {}

    Time now;
    std::optional<std::uint64_t> key_hash;
  };

  struct Reply {
    Outcome outcome = Outcome::ok;
    Grant grant{};           // when ok
    std::uint32_t slot = 0;  // when queued: for cancel()
  };

  // Grants, queues or refuses. `listener` and `id` are handed back when a queued request is
  // settled; without a listener nothing is queued, and the answer is held. A new key takes `spare`
  // or, when that is empty, a unit of the budget. `conflict`, if given, tells who is in the way of
  // a request that was not granted.
  //
  // A name or secret that holds the key gets that grant again. Its deadline moves to now + ttl
  // unless that would be earlier, and the grant's ttl is at most what remains. A secret that waits
  // gets its place in the queue again, with this request's wait; the request that waited there
  // ends as taken_over. Hold and place then belong to the session that asks, unless a later session
  // has them: then the reply is that grant, or taken_over, and ownership does not change.
  Reply acquire(At at, const AcquireRequest& request, Listener* listener, std::uint64_t id,
                KeyUnit spare = {}, Conflict* conflict = nullptr) noexcept;

  // Joins the queue without waiting: ok is a grant, queued a place. The holder is a secret with a
  // session, or it is invalid. One that asks again is answered as by acquire().
  Reply enqueue(At at, const EnqueueRequest& request, KeyUnit spare = {}) noexcept;

  // Waits for what enqueue() began: ok with a fresh lease when the grant is there, queued until it
  // is, timeout with the place given up when `wait` is zero, expired when the grant has lapsed.
  Reply await_turn(At at, SessionId session, Kind kind, std::string_view name, Duration wait,
                   Listener* listener, std::uint64_t id) noexcept;

  // Moves the lease to `ttl` from now, or ttl_max; without one, to the grant's own.
  Reply renew(At at, const HoldId& hold, std::optional<Duration> ttl) noexcept;

  Outcome release(At at, const HoldId& hold) noexcept;

  // Which holds of a key an admin ends, and why.
  struct Revocation {
    Kind kind;
    std::string_view key;
    std::optional<Fence> fence;  // the one of this fence; or, without one,
    Fence last;                  // all up to this: what begins meanwhile has a larger one
    AdminNote note{};
  };
  // Ends such holds against their holders' will, the oldest first and at most `holds_max`, and
  // calls `ending` with each while it is still there. ok: some have ended; stale: nobody holds the
  // key under such a fence; expired: nobody holds it.
  template <typename Ending>
  Outcome revoke(At at, const Revocation& revocation, std::size_t holds_max,
                 Ending ending) noexcept {
    if (!is_good(revocation.note)) return Outcome::invalid_note;
    Key* key = find_at(at, revocation.kind, revocation.key);
    Hold* hold = find_revoked(key, revocation);
    if (hold == nullptr) return why_not(key, revocation);
    for (; hold != nullptr && holds_max > 0; hold = find_revoked(key, revocation)) {
      ending(static_cast<const Hold&>(*hold));
      end_hold(*hold, EndCause::revoked, revocation.note);
      grant_next(*key);
      --holds_max;
    }
    return Outcome::ok;
  }

  // Sets the limit of a semaphore that is held, until it is idle. expired: nobody holds it.
  Outcome resize(At at, std::string_view name, std::uint32_t limit, const AdminNote& note) noexcept;

  // Ends a hold as if its session had ended, unless its lease was moved since the grant. False if
  // so, or if it is not there.
  bool withdraw(At at, const HoldId& hold) noexcept;

  // Gives up a wait: it ends as cancelled. False when it had ended before.
  bool cancel(Time now, std::uint32_t slot, const Listener* listener, std::uint64_t id) noexcept;

  FenceStatus fence(At at, std::string_view name) noexcept;

  // Who holds the key and how many wait. False when nobody holds it.
  bool explain(At at, Kind kind, std::string_view name, Conflict* conflict) noexcept;

  // The key with everything due there ended, or null. Valid until the next call.
  const Key* find(At at, Kind kind, std::string_view name) noexcept {
    return find_at(at, kind, name);
  }

  // Ends a session: its places in the queue go; its holds are released and passed on, or, if
  // `keep_holds`, left to their leases, but for those that it was never told of. Does about
  // `budget` steps, less those it took, and returns true when nothing is left. The session asks for
  // nothing more.
  bool end_session(Time now, SessionId session, bool keep_holds, int* budget) noexcept;
  // Its places in the queue go, and its holds stay its own: it may come back. As above otherwise.
  bool end_places(Time now, SessionId session, int* budget) noexcept;
  // Forgets a session that has nothing; one that asks again is known again. False: it has
  // something.
  bool forget_session(SessionId session) noexcept;

  // What the session holds and waits for here.
  Owned owned(SessionId session) const;
  // Whether that is anything.
  bool has_session(SessionId session) const;
  // Whether it holds anything here that it was told of.
  bool has_acknowledged_hold(SessionId session) const;

  // Ends leases and waits that are due, in the order of their deadlines, in about `budget` steps.
  // True when nothing due is left.
  bool advance(Time now, int budget) noexcept;
  // A lower bound on when advance() is needed next.
  Time next_deadline() const { return timers_.next_deadline(); }

  // Forgets up to `keys_max` keys that nobody has held or waited for since `since`, and returns how
  // many. Their units go back to the budget.
  std::size_t forget_idle(Time since, std::size_t keys_max) noexcept;
  // Forgets the key that has been idle longest and hands over its unit. Empty when none is idle, or
  // there are more keys than there may be: then one less.
  KeyUnit reclaim_idle() noexcept;
  bool has_idle() const { return !idle_.empty(); }
  // How often a key has become idle.
  std::uint64_t idlings() const { return idlings_; }

  // Settles the waits of the next few keys with `why`, in the order of their queues.
  void end_waits(Cursor& cursor, Outcome why) noexcept;

  // Takes over what a journal tells. Idempotent; no effects. Events of holds that are not there are
  // ignored. False if it contradicts what is there: the journal is not to be trusted. `at`, if
  // given, is when it was told, and the history has it then; without, it is a recovery.
  bool apply(const Event& event, std::optional<Time> at = {}) noexcept;
  // No lease ends before `least` from `now`, or its own length if that is less. No effects.
  void prolong_leases(Time now, Duration least) noexcept;
  // No grant will have a fence up to and including this one.
  void raise_fence(Fence floor) noexcept;
  Fence last_fence() const { return fence_; }
  // The next few keys as `granted` events: apply() of them all, and of a fence_floor, rebuilds the
  // table, queues aside. The views live until the next call.
  void describe(Cursor& cursor, std::size_t keys_max, std::vector<Event>& events) const;
  template <typename Visit>
  void walk(Cursor& cursor, std::size_t keys_max, Visit visit) const {
    index_.walk(cursor, keys_max, [&](const Key& s) { visit(s); });
  }

  // Looks at the next few keys and waiters, about `steps`, for what lasts longest; and records
  // what has become slow, once each. A key is looked at whole.
  void scan_ages(Time now, AgeCursor& cursor, std::size_t steps, OldestEntries& found) noexcept;

  // What the calls since the last clear() have caused. The views in it live until the next call,
  // but for the key of what was refused: that is the request's.
  Effects& effects() { return effects_; }

  // Which key_events are recorded.
  void observe(Observed what) { stats_.observe(what); }
  Stats stats() const;
  const History& history() const { return stats_.history(); }
  // The engine has no key for the request: the last word, where acquire() and enqueue() answer
  // max_keys whenever this table finds none.
  template <typename Request>  // AcquireRequest or EnqueueRequest
  void record_max_keys(Time now, const Request& request) noexcept {
    record_refusal(request, nullptr, Outcome::max_keys, std::max(now, now_));
  }

  // Who the client of a hold here says it is; null if it does not.
  ClientRef client_of(const Hold& hold) const { return clients_.of(hold); }

  // How many keys a place waits for together.
  std::uint32_t keys_of(const QueuePlace& place) const {
    if (!place.of_set) return 1;
    return static_cast<std::uint32_t>(sets_.find(&place)->second.set->parts.size());
  }

  // Of a semaphore: how many of its permits are taken.
  std::uint32_t permits_in_use(const Key& key) const {
    return key.kind == Kind::lock ? 0 : static_cast<std::uint32_t>(in_use(key));
  }

  // Of a semaphore that was resized what its first acquirer asked for, else 0.
  std::uint32_t first_limit(const Key& key) const {
    return key.resized ? first_limits_.find(&key)->second : 0;
  }

  std::size_t keys() const { return index_.size(); }
  std::size_t waiters() const { return slots_.size(); }
  Time now() const { return now_; }

  // Looks at everything; the name of a broken invariant and what breaks it, or an empty string.
  std::string check() const;

 private:
  friend class SetRules;

  // How much of what has fallen due elsewhere an operation clears away in passing.
  static constexpr int kStepsPerCall = 16;

  static Outcome check_request(const AcquireRequest& request);
  static Outcome mismatch(Kind kind);

  // Time.
  Key* find_at(At at, Kind kind, std::string_view name);
  void catch_up(Key& key);
  bool is_quiet(const Key& key) const;
  void end_due(Key& key);
  static const Key& key_of(const Timer& timer);
  void on_timer(Timer& timer);
  void arm(Timer& timer, Duration after);

  // Keys.
  Key& create(Kind kind, std::string_view name, KeyUnit unit);
  void forget(Key& key);
  void grant_next(Key& key);
  void leave_idle(Key& key);

  // Holds.
  Hold* find_known(const Key* key, Fence fence) const;
  Hold* find_hold(const Key* key, Fence fence) const;
  Hold& add_hold(Key& key, StoredHolder holder, std::uint32_t takes, Fence fence, Duration ttl);
  void mark(Hold& hold, bool unacknowledged);
  void remove_hold(Hold& hold);
  void join_session(Hold& hold);
  void leave_session(Hold& hold);
  static Holder owner_of(const Hold& hold);
  template <typename Request>
  Outcome admit(const Request& request, const Key* key);
  template <typename Request>
  Outcome refuse(const Request& request, const Key* key, Outcome why);
  template <typename Request>
  void record_refusal(const Request& request, const Key* key, Outcome why, Time now);
  Duration capped(Duration ttl) const;
  Hold& grant(Key& key, StoredHolder holder, KnownClient client, std::uint32_t takes, Duration ttl,
              Fence fence);
  Hold& grant(QueuePlace& place, Fence fence);
  template <typename Request>
  Outcome take(Key* key, const Request& request, KeyUnit spare, Hold** hold);
  void refresh(Hold& hold, Duration ttl);
  void move_deadline(Hold& hold, Time deadline);
  void end_hold(Hold& hold, EndCause cause, const AdminNote& note = {});
  static Grant grant_of(const Hold& hold);
  Event granted(const Hold& hold) const;
  void fill_conflict(const Key& key, Conflict* conflict, const Hold* whose = nullptr) const;
  KnownClient client_of(const AcquireRequest& request);
  KnownClient client_of(const EnqueueRequest& request);
  Outcome why_not(const Key* key, const HoldId& id) const;
  Hold* find_revoked(const Key* key, const Revocation& revocation) const;
  static Outcome why_not(const Key* key, const Revocation& revocation);

  static bool is_good(const AdminNote& note);

  // Asking again.
  Hold* find_own(const Key& key, const Holder& holder) const;
  QueuePlace* find_place(const Key& key, const Holder& holder) const;
  Outcome compare_request(const Key& key, std::uint32_t limit, std::uint32_t takes, const Hold* own,
                          const QueuePlace* place);
  Reply grant_again(Hold& own, Duration ttl);
  void extend(Hold& own, Duration ttl);
  Grant remaining_grant(const Hold& own) const;
  Reply resume(QueuePlace& place, const AcquireRequest& request, Listener* listener,
               std::uint64_t id);
  std::optional<Reply> enqueue_again(Key& key, const EnqueueRequest& request);
  bool take_over(Hold& hold, const Holder& asker);
  bool take_over(QueuePlace& place, const Holder& asker);

  // Room.
  std::uint64_t in_use(const Key& key) const;
  bool fits(const Key& key, std::uint32_t takes) const;
  bool may_enter(const Key& key, std::uint32_t takes) const;
  void count_room(Hold& hold, bool is_taken);
  void keep_fence(const Hold& ended);
  Fence largest_fence(const Key& key) const;
  Fence largest_beside(const Hold& shared) const;

  // Limits.
  bool adopt_limits(Key& key, const Event& granted);
  bool has_binding_limit(const Key& key) const;
  bool matches(const Key& key, std::uint32_t limit, std::uint32_t takes) const;
  void set_limit(Key& key, std::uint32_t limit);
  void end_oversized(Key& key);
  void end_resize(Key& key);

  // Ages.
  void scan_holds(Key& key, Time now, OldestEntries& found);
  void scan_wait(QueuePlace& place, Time now, OldestEntries& found);

  // Queues.
  bool is_refused_by_queue(const Key& key, Duration wait) const;
  bool queue_is_full(const Key& key) const;
  Outcome queue_refusal(const Key& key, const AcquireRequest& request, const Listener* listener);
  template <typename Request>
  QueuePlace& join(Key& key, const Request& request);
  void grant_waiters(Key& key);
  void leave_queue(QueuePlace& place, Outcome why);
  void give_up(QueuePlace& place, Outcome why, const Grant& grant = {});
  void settle(QueuePlace& place, Outcome outcome, const Grant& grant);
  void leave(QueuePlace& place);
  void join_owner(QueuePlace& place);
  void leave_owner(QueuePlace& place);
  void grant_same_owner(Hold& hold);
  void wake_set(const QueuePlace& place);
  bool is_over(const QueuePlace& place) const;
  bool end_set(const QueuePlace& place, Outcome why);
  Enqueued& begin_two_phase(SessionId session, Key& key);
  void drop(Enqueued& enqueued);

  const TableOptions options_;
  KeyBudget& budget_;
  HoldUnits units_;
  ClientNames clients_{options_.hash_key};
  KeyIndex index_;
  HoldIndex hold_index_{options_.hash_key};
  PlaceIndex places_{options_.hash_key};
  EnqueuedIndex enqueued_;
  PlaceSlots slots_;
  TimerQueue timers_;
  Holds idle_;  // the first holds of the keys that nobody holds, the longest idle first
  boost::unordered_flat_map<SessionId, SessionItems> sessions_;
  // Of semaphores that were resized, and are not idle yet: what their first acquirers asked for.
  boost::unordered_flat_map<const Key*, std::uint32_t> first_limits_;
  // Of semaphores of which a hold takes more than one permit: how many more than one a hold.
  boost::unordered_flat_map<const Key*, std::uint64_t> extra_permits_;
  // Of locks that are shared: the fence of a hold that has ended, if it is larger than that of the
  // first hold, where it would be kept.
  boost::unordered_flat_map<const Key*, Fence> past_fences_;
  std::uint64_t shared_holds_ = 0;
  boost::unordered_flat_map<const QueuePlace*, PlaceInSet> sets_;  // of the places that are of one
  Effects effects_;
  TableStats stats_{effects_.key_events, clients_, {options_.history_size, options_.refusals}};
  const Hold* replayed_ = nullptr;  // the last hold that apply() was told of
  std::uint64_t idlings_ = 0;
  std::uint64_t idle_keys_ = 0;
  Fence fence_;
  Fence raised_fence_ = 0;  // what it was when a journal told of it last
  // The last one when the call began: no caller knows a larger one. So what a call grants does not
  // end in it, and the texts of its event, which are the hold's, last until they are read.
  Fence known_ = 0;
  SessionId ending_ = 0;  // whose places are none any more
  Time now_;
  bool behind_ = false;  // advance() left something that is due
  // While it is behind: until when nothing falls due in keys that were brought up to date.
  boost::unordered_flat_map<const Key*, Time> quiet_until_;
};

}  // namespace lockd
