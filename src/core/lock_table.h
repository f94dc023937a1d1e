// LockTable: the rules for one shard's keys. Grants, queues, leases and fences.
//
// A pure state machine: requests take the current time and return an outcome. There is no
// clock, thread, I/O, callback or randomness here, so the same calls at the same times always
// produce the same state. Side effects (journal events, finished waits) accumulate in effects(),
// which the caller collects after each call.
//
// LockTable decides what becomes of each request for one key; SetRules does so for several keys.
// Both use the changes that TableState offers. LockTable owns the TableState; a SetRules serves one
// call.
//
// Invariants (checked by check(), by name; the two marked * by the model of the property test):
//   holders-bounded      no grant makes the permits in use exceed the limit
//   shares-or-alone      a lock has one hold, or all of its holds share it
//   first-come           requests for a key are granted in the order in which they were queued, and
//                        before every later request
//   fences-rise          each grant's fence is larger than every earlier fence of this table; keys
//                        that are granted in one step have one fence
//   settled-once         a queued request ends exactly once
//   lease-honoured       a hold ends before its deadline only if its owner or an admin ends it
//   no-idle-waiter       the head of a queue does not fit its key, or waits for other keys too
//   replay-equals *      apply() of all events rebuilds the table that caused them, except queues
//   failed-changes-nothing *
//                        a refused request leaves the keys as they were
//   bounded              keys are bounded by the budget, waiters per key by waiters_max, holds and
//                        places together by their budget
//   counted              stats() agrees with the table
//
// A request first ends what is due: everything at the key that it names, and a little of what is
// due elsewhere. A request at time t therefore finds every lease that ends by t already over. If
// `now` is earlier than in a previous call, the table uses the later time.
//
// Functions that change the table are noexcept: if memory runs out in the middle of a change, the
// process ends there, and recovery starts from the journal.
//
// Not thread-safe. Shard adds the mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/table_state.h"
#include "lockd/observer.h"

namespace lockd {

// The oldest wait, the oldest hold and the longest queue of what was scanned.
struct OldestEntries {
  struct Entry {
    Kind kind = Kind::lock;
    std::string key{};  // empty: there is none
    Time since = Time::never();
  };
  struct Queue {
    Kind kind = Kind::lock;
    std::string key{};
    std::uint32_t waiters = 0;
  };
  Entry wait{};
  Entry hold{};
  Queue queue{};
};

// The position of scan_ages(). Starts at the beginning.
struct AgeCursor {
  Cursor keys{};
  std::uint32_t slot = 0;  // of the waiters, which follow the keys
  bool done = false;
};

class LockTable {
 public:
  using At = lockd::At;

  // The budgets are shared by the tables of an engine and outlive them. `holds` may be null: no
  // limit.
  LockTable(const TableOptions& options, KeyBudget& budget, HoldBudget* holds = nullptr)
      : state_(options, budget, holds) {}

  struct Reply {
    Outcome outcome = Outcome::ok;
    Grant grant{};           // when ok
    std::uint32_t slot = 0;  // when queued: for cancel()
  };

  // Grants the request, queues it, or refuses it.
  //
  // If `listener` is null the request is never queued; a key in use then yields Outcome::held. A
  // queued request ends exactly once, with a WaitResult for `listener` and `id` in effects(). A new
  // key takes `spare` or, if that is empty, a unit of the budget. `conflicts`, if not null,
  // receives the holder when the key's state refuses the request.
  //
  // A holder that repeats its request gets its grant again: the deadline moves to now + ttl unless
  // that would be earlier, and the reply's ttl is at most what remains. A secret that waits gets
  // its place again, with this request's wait; the request that waited there ends as taken_over.
  // Hold and place then belong to the asking session. If a later session has them, they stay with
  // it, and the reply is the grant, or taken_over.
  Reply acquire(At at, const KeyRequest& request, Listener* listener, std::uint64_t id,
                KeyUnit spare = {}, std::vector<Conflict>* conflicts = nullptr) noexcept;

  // Joins the queue without waiting: ok is a grant, queued a place. The holder must be a secret
  // with a session, otherwise the outcome is invalid_holder. A repeated request is treated as by
  // acquire().
  Reply enqueue(At at, const KeyRequest& request, KeyUnit spare = {}) noexcept;

  // Waits for what enqueue() began: ok with a fresh lease if the grant is there, queued until it
  // is, timeout and no place any more if `wait` is zero, expired if the grant has lapsed.
  Reply await_turn(At at, SessionId session, Kind kind, std::string_view name, Duration wait,
                   Listener* listener, std::uint64_t id) noexcept;

  // Moves the deadline to now + ttl, at most now + ttl_max. Without `ttl`, uses the hold's own.
  Reply renew(At at, const KeyHold& hold, std::optional<Duration> ttl) noexcept;

  // Ends the hold and grants the key to the next waiters.
  Outcome release(At at, const KeyHold& hold) noexcept;

  // Which holds of a key an admin ends, and why.
  struct Revocation {
    Kind kind;
    std::string_view key;
    std::optional<Fence> fence;  // this hold; without a fence,
    Fence last;                  // all holds up to this fence, which excludes later grants
    AdminNote note{};
  };
  // Ends such holds, the oldest first and at most `holds_max`, and calls `ending` with each before
  // it ends. ok: at least one has ended; stale: the key is held under other fences; expired: the
  // key is not held.
  template <typename Ending>
  Outcome revoke(At at, const Revocation& revocation, std::size_t holds_max,
                 Ending ending) noexcept {
    if (!is_valid(revocation.note)) return Outcome::invalid_note;
    Key* key = state_.find(at, revocation.kind, revocation.key);
    Hold* hold = find_revoked(key, revocation);
    if (hold == nullptr) return why_not(key, revocation);
    for (; hold != nullptr && holds_max > 0; hold = find_revoked(key, revocation)) {
      ending(static_cast<const Hold&>(*hold));
      state_.end_hold(*hold, EndCause::revoked, revocation.note);
      state_.grant_next(*key);
      --holds_max;
    }
    return Outcome::ok;
  }

  // Sets the limit of a semaphore that is in use, until it is idle. expired: it is not in use.
  Outcome resize(At at, std::string_view name, std::uint32_t limit, const AdminNote& note) noexcept;

  // Ends a hold as if its session had ended, unless its lease has moved since the grant. False if
  // it has, or if there is no such hold.
  bool withdraw(At at, const KeyHold& hold) noexcept;

  // Ends a wait as cancelled. False if it had ended before.
  bool cancel(Time now, std::uint32_t slot, const Listener* listener, std::uint64_t id) noexcept;

  FenceStatus fence(At at, std::string_view name) noexcept;

  // Describes the latest hold and the queue. False if the key is not held.
  bool explain(At at, Kind kind, std::string_view name, Conflict* conflict) noexcept;

  // The key, after everything due there has ended, or null. Valid until the next call.
  const Key* find(At at, Kind kind, std::string_view name) noexcept {
    return state_.find(at, kind, name);
  }

  // Ends a session: cancels its waits, releases its holds and grants them to the next waiters. With
  // `keep_holds`, holds whose grant the session received are left to their leases. Takes about
  // `budget` steps, subtracts them, and returns true when nothing is left. The session makes no
  // further requests.
  bool end_session(Time now, SessionId session, bool keep_holds, int* budget) noexcept;
  // Cancels the session's waits and keeps its holds: the session may return. Otherwise as
  // end_session().
  bool end_places(Time now, SessionId session, int* budget) noexcept;
  // Forgets a session without holds and places; its next request registers it again. False if it
  // has some.
  bool forget_session(SessionId session) noexcept { return state_.sessions().forget(session); }
  const SessionIndex& sessions() const { return state_.sessions(); }

  // Ends leases and waits that are due, in the order of their deadlines, in about `budget` steps.
  // True when nothing due is left.
  bool advance(Time now, int budget) noexcept { return state_.advance(now, budget); }
  // A lower bound on when advance() is needed next.
  Time next_deadline() const { return state_.timers().next_deadline(); }

  // Forgets up to `keys_max` keys that have been idle since `since`, and returns how many. Their
  // units return to the budget.
  std::size_t forget_idle(Time since, std::size_t keys_max) noexcept;
  // Forgets the key that has been idle longest and returns its unit. Empty if no key is idle, or if
  // the units in use exceed the budget: then the key's unit reduces the excess.
  KeyUnit reclaim_idle() noexcept;
  const IdleKeys& idle() const { return state_.idle(); }

  // Ends the waits of the next few keys with `why`, in the order of their queues.
  void end_waits(Cursor& cursor, Outcome why) noexcept;

  // Applies a journal event. Idempotent; has no effects. Ignores events of holds that are not
  // there. False if the event contradicts the table: the journal is then damaged. `at` is when a
  // follower received the event, which the history records; without it, the event is being
  // recovered.
  bool apply(const Event& event, std::optional<Time> at = {}) noexcept;
  // Moves deadlines so that no lease ends before now + `least`, or before now + its own ttl if that
  // is less. Has no effects.
  void prolong_leases(Time now, Duration least) noexcept;
  // No grant will have a fence up to and including `floor`.
  void raise_fence(Fence floor) noexcept { state_.fences().raise(floor); }
  Fence last_fence() const { return state_.fences().last; }
  // Appends the next few keys as `granted` events. apply() of them all, and of a fence_floor,
  // rebuilds the table without queues. The views live until the next call.
  void describe(Cursor& cursor, std::size_t keys_max, std::vector<Event>& events) const;
  template <typename Visit>
  void walk(Cursor& cursor, std::size_t keys_max, Visit visit) const {
    state_.keys().walk(cursor, keys_max, [&](const Key& key) { visit(key); });
  }

  // Scans the next few keys and waiters, about `steps`, for the oldest; and records each hold and
  // wait once when it has become slow. A key is scanned whole.
  void scan_ages(Time now, AgeCursor& cursor, std::size_t steps, OldestEntries& found) noexcept;

  // What the calls since the last clear() have caused. The views in it live until the next call;
  // the key of a refusal is the request's.
  Effects& effects() { return state_.effects(); }

  // Which key events are recorded.
  void observe(Observed what) { state_.stats().observe(what); }
  Stats stats() const;
  const History& history() const { return state_.stats().history(); }
  // Records that the engine found no key unit for the request in any table.
  void record_max_keys(Time now, const KeyRequest& request) noexcept {
    state_.limits().record_refusal(request, nullptr, Outcome::max_keys, std::max(now, this->now()));
  }
  // The identity of the client of a hold; null if it has none.
  ClientRef client_of(const Hold& hold) const { return state_.clients().of(hold); }

  std::size_t keys() const { return state_.keys().size(); }
  std::size_t waiters() const { return state_.places().size(); }
  Time now() const { return state_.now(); }

  // For SetRules and the checks.
  TableState& state() { return state_; }
  const TableState& state() const { return state_; }

  // Checks every invariant. Returns the name of a broken one and the key that breaks it, or an
  // empty string. Slow: for tests and the simulation.
  std::string check() const;

  // What is wrong with a request, whatever the state, or ok. The key's name is checked only when a
  // key is created.
  static Outcome check_request(const KeyRequest& request);

 private:
  static bool is_valid(const AdminNote& note);
  Hold* find_revoked(const Key* key, const Revocation& revocation) const;
  static Outcome why_not(const Key* key, const Revocation& revocation);

  Outcome check_repeated(const Key& key, const KeyRequest& request, const Hold* own,
                         const QueuePlace* place);
  Outcome queue_refusal(const Key& key, const KeyRequest& request, const Listener* listener);
  Outcome grant_now(Key* key, const KeyRequest& request, KeyUnit spare, Hold** hold);
  Reply grant_again(Hold& own, Duration ttl);
  Reply resume_wait(QueuePlace& place, const KeyRequest& request, Listener* listener,
                    std::uint64_t id);
  std::optional<Reply> enqueue_again(Key& key, const KeyRequest& request);

  TableState state_;
};

}  // namespace lockd
