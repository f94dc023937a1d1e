// The lock engine, embedded: FIFO locks and semaphores, by name, with leases and fencing tokens.
//
//   lockd::Engine engine({.shards = 16});
//   auto grant = engine.acquire({.key = "stone-42", .holder = "cart-7", .ttl = 30s, .wait = 5s});
//   if (!grant) return show(describe(grant.outcome));
//   store.write(stone, grant->fence);     // the store refuses a fence smaller than it has seen
//   engine.release({.key = "stone-42", .holder = "cart-7", .fence = grant->fence});
//
// Every key has one FIFO queue, whoever asks and however. A grant lasts for its lease and can be
// renewed; when the lease is over, the next in the queue is granted within a few milliseconds,
// never early. Every grant's fence is larger than those before it for that key.
//
// Any thread may call anything, except the destructor. Calls do not throw for anything that can be
// expected: they return an Outcome. When memory runs out in the middle of a change, the process
// ends there (std::terminate): half a change is never seen, and the journal has what was
// acknowledged. Several engines in one process know nothing of each other.
//
// With a journal, nothing that acquire(), renew(), release(), fence() and status() return can be
// undone by a crash: they wait until the journal has what it rests on. When the journal has failed
// they return `storage` and nothing else, and so does every call that is blocked in a queue, at
// once. The rest of the engine's calls do not wait: those that tell of keys say what it rests on.
//
// After fork() the child must not use the parent's engine: its threads are not there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lockd/clock.h"
#include "lockd/held.h"
#include "lockd/journal.h"
#include "lockd/observer.h"
#include "lockd/requests.h"
#include "lockd/stats.h"
#include "lockd/types.h"

namespace lockd {

// What the sweeper did at one time when there was something to do.
struct Sweep {
  std::uint32_t shards = 0;          // in which leases or waits had fallen due
  std::uint64_t waits_ended = 0;     // granted what became free, or timed out
  std::uint64_t keys_forgotten = 0;  // that were idle
  Duration took{};
};

struct EngineOptions {
  std::uint32_t shards = 64;  // a power of two, 1 to 64
  std::uint64_t keys_max = 1'000'000;
  std::uint32_t waiters_max = 0;  // per key; 0 is no limit
  // A request without a wait is refused with max_waiters, not with held, where waiters_max requests
  // wait already.
  bool refuses_tries_at_full_queue = false;
  // A semaphore keeps its limit while it is idle: a request that names another limit is refused
  // with limit_mismatch until the key is forgotten. Otherwise the next request sets the limit.
  bool keeps_idle_limits = false;
  // Holds and places in queues together, in all and of one client: a session, or a name. 0 is no
  // limit; one of 262,144 or more may refuse up to 0.1 % early.
  std::uint64_t holds_max = 0;
  std::uint32_t holds_per_client_max = 0;
  Duration ttl_max{};     // a longer lease is cut to this; zero is no limit
  Fence fence_floor = 0;  // every grant's fence is larger, whatever the journal has
  // How long a request for several keys may stand in their queues: a longer wait is cut to this.
  Duration set_wait_max = std::chrono::seconds(600);
  Duration idle_max = std::chrono::seconds(60);    // a key that nobody uses is forgotten after this
  Duration gc_interval = std::chrono::seconds(5);  // how often that is looked after
  Duration sweep_interval = std::chrono::seconds(1);  // the longest sleep between deadlines
  // How often it is looked for what lasts longest: see ages(). Zero is never.
  Duration age_interval{};
  // A wait, and a hold, that is so old is slow, and recorded once: zero is never. It is noticed
  // when ages are looked at.
  Duration slow_wait{};
  Duration slow_hold{};
  // How many bytes of what happened are kept, for history(); 0 is none. Little is rounded up.
  std::size_t history_size = 0;

  Clock* clock = nullptr;        // null: the system's; else it outlives the engine
  Journal* journal = nullptr;    // null: nothing is kept; else it outlives the engine
  Observer* observer = nullptr;  // null: nobody looks on; else it outlives the engine
  // Called when more has become durable, or the journal's state has changed, from the journal's
  // thread with no lock held: a loop that holds answers back looks again. Must not block.
  std::function<void()> on_durable{};
  // Called by the sweeper, or by sweep(), with no lock held. Must not block.
  std::function<void(const Sweep&)> on_sweep{};
  bool sweeper = true;          // false: nobody but sweep() ends what falls due unasked
  std::uint64_t hash_seed = 0;  // 0: a random one
};

// What acquire() and renew() return: a grant, or why there is none.
struct [[nodiscard]] GrantResult {
  Outcome outcome = Outcome::ok;
  Grant grant{};
  Conflict conflict{};  // who was in the way, when that is the reason

  explicit operator bool() const { return outcome == Outcome::ok; }
  const Grant* operator->() const { return &grant; }
};

// What acquire_all() and renew_all() return: one grant for all, or what stands in the way. To
// renew_all() that is the first key that is not held.
struct [[nodiscard]] SetResult {
  Outcome outcome = Outcome::ok;
  Grant grant{};
  std::vector<SetConflict> conflicts{};

  explicit operator bool() const { return outcome == Outcome::ok; }
  const Grant* operator->() const { return &grant; }
};

// What release_all() returns: ok when it looked, and what has become of each key.
struct ReleaseSetResult {
  Outcome outcome = Outcome::ok;
  std::vector<bool> released{};  // one for each key of the request; false: it was not held

  explicit operator bool() const { return outcome == Outcome::ok; }
};

// What fence() returns. Not ok: the journal has failed, and what there is to tell may be lost.
struct [[nodiscard]] FenceResult {
  Outcome outcome = Outcome::ok;
  FenceStatus status{};

  explicit operator bool() const { return outcome == Outcome::ok; }
  const FenceStatus* operator->() const { return &status; }
};

// The most holds, and waiters, of one key that are ever listed.
inline constexpr std::size_t kEntriesMax = 2048;

struct HoldStatus {
  std::string holder;  // a name, or "tcp:<session>"
  SessionId session = 0;
  ClientRef client{};
  Fence fence = 0;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  Duration held{};
  Duration ttl{};  // the lease as asked for
  Duration remaining{};
};

// What revoke() returns: ok and what has ended; stale, held by others under other fences; expired,
// nobody holds it.
struct [[nodiscard]] RevokeResult {
  Outcome outcome = Outcome::ok;
  std::vector<HoldStatus> holds{};  // as they were; at most kEntriesMax are listed
  std::uint64_t count = 0;          // how many that were in all

  explicit operator bool() const { return outcome == Outcome::ok; }
};

struct WaiterStatus {
  std::string holder;
  SessionId session = 0;
  ClientRef client{};
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  std::uint32_t keys = 1;  // how many it waits for together
  Duration waited{};
};

struct KeyStatus {
  Kind kind = Kind::lock;
  std::string key;
  std::uint32_t limit = 1;
  std::uint32_t holders = 0;
  std::uint32_t waiters = 0;
  std::uint32_t permits = 0;  // in use, of a semaphore
  // Of the latest grant that is in force; when none is, of an earlier one: of a lock, the last.
  Fence fence = 0;
  Duration idle{};                    // when there are neither
  std::vector<HoldStatus> holds{};    // in the order of their fences
  std::vector<WaiterStatus> queue{};  // the first in the queue first
};

// What status() returns. ok and no key: nobody has held it lately. Not ok: as for FenceResult.
struct [[nodiscard]] StatusResult {
  Outcome outcome = Outcome::ok;
  std::optional<KeyStatus> key{};

  explicit operator bool() const { return key.has_value(); }
  const KeyStatus* operator->() const { return &*key; }
};

// How far a listing in pieces has come. Starts at the beginning. A plain value: it may be written
// down, and come back at any time and from anywhere; one that was never given out does no harm.
struct ListCursor {
  std::uint32_t shard = 0;
  std::uint64_t rank = 0;  // among the shard's keys, by their hashes
  bool done = false;

  friend bool operator==(const ListCursor&, const ListCursor&) = default;
};

// Which of what happened: all that is given must match.
struct HistoryQuery {
  std::string key{};     // empty: any, as of the texts below
  std::string holder{};  // a name, or "tcp:<session>"
  std::string client{};  // the name that it gave itself
  SessionId session = 0;
  std::optional<KeyEvent::Type> type{};
  Time since{};
  std::vector<std::string> prefixes{};  // the key begins with one of these; none: any key
  std::size_t events_max = 100;

  friend bool operator==(const HistoryQuery&, const HistoryQuery&) = default;
};

// What lasts longest: see Engine::ages(). A key that is empty: there is none.
struct Ages {
  struct Of {
    Kind kind = Kind::lock;
    std::string key{};
    Duration age{};
  };
  struct Queue {
    Kind kind = Kind::lock;
    std::string key{};
    std::uint32_t waiters = 0;
  };
  Of oldest_wait{};
  Of oldest_hold{};
  Queue longest_queue{};
};

namespace detail {
class EngineCore;
class HoldRenewer;
}  // namespace detail

class Engine {
 public:
  // Recovers from the journal, if there is one, before it returns. Throws std::invalid_argument for
  // options out of range, and std::runtime_error when the journal contradicts itself.
  explicit Engine(const EngineOptions& options = {});

  // Closes, and waits until the calls that are blocked in a queue have returned. Other threads must
  // be done with the engine, or blocked there. What hold() gave is lost, and released. Listeners
  // that have not heard by then, because the journal has not made durable what it rests on, are
  // told closed.
  ~Engine();

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Blocks for up to `request.wait`, in the queue, until granted. When `stop` fires the call leaves
  // the queue at once, and the outcome is cancelled. A name that holds the key already gets its
  // grant back with the lease refreshed: to ask twice is safe.
  GrantResult acquire(const AcquireRequest& request, std::stop_token stop = {});

  // Several keys in one step, all or none: see AcquireSetRequest. A name that holds all of them
  // under one fence gets that grant back, with the lease refreshed; one that holds some of them is
  // refused. After the grant each is a hold like any other, that can be renewed and released alone.
  SetResult acquire_all(const AcquireSetRequest& request, std::stop_token stop = {});
  // All of them or none.
  SetResult renew_all(const SetId& holds, std::optional<Duration> ttl = {});
  // Those that are held.
  ReleaseSetResult release_all(const SetId& holds);

  // The same as acquire() and acquire_all(), and the engine keeps it: what is returned is renewed,
  // tells of its loss and is released with its scope. The holder is a name, and should be one that
  // nobody else has: who asks again under it shares the hold, and the first to let go ends it for
  // all. Throw std::system_error when the system gives no thread.
  HeldResult hold(const AcquireRequest& request, std::stop_token stop = {}, OnLost on_lost = {});
  HeldResult hold_all(const AcquireSetRequest& request, std::stop_token stop = {},
                      OnLost on_lost = {});

  // Moves the end of the lease to `ttl` from now, or to the grant's own lease from now. Fails once
  // the lease is over: nothing is resurrected.
  GrantResult renew(const HoldId& hold, std::optional<Duration> ttl = {});

  Outcome release(const HoldId& hold);

  // For an admin: ends a hold, or all of a key, against the holder's will. Its name and the reason
  // are for observers.
  RevokeResult revoke(const RevokeRequest& request);
  // For an admin: sets the limit of a semaphore that is held, until it is idle. A larger one grants
  // to those who wait; a smaller one takes nothing away. Meanwhile a request may name it, or the
  // limit that the first acquirer named. expired: nobody holds it.
  Outcome resize(std::string_view key, std::uint32_t limit, std::string_view reason,
                 std::string_view by);

  FenceResult fence(std::string_view key);

  // The key as it is, with at most `entries_max` of its holds and of its waiters, and never more
  // than kEntriesMax; the counts are always whole.
  StatusResult status(Kind kind, std::string_view key, std::size_t entries_max = 16);

  // Calls `visit` for every key there is, in no order that means anything; a key that comes or goes
  // meanwhile may be missed. No lock is held during the calls, and none for longer than a few
  // hundred keys, or a few thousand entries, take. A lease that is over may be listed until it is
  // ended, with nothing remaining. What was visited rests on the returned position: see
  // wait_durable().
  Position list(const std::function<void(const KeyStatus&)>& visit,
                std::size_t entries_max = 16) const;

  // The same in pieces: the next keys from `place` on, at most `keys_max`, and moves `place`. A key
  // that is there throughout a listing is visited exactly once, whatever comes and goes between its
  // pieces. (Of several keys with one hash none is left for the next piece: then it may be more.)
  Position list_some(ListCursor& place, std::size_t keys_max,
                     const std::function<void(const KeyStatus&)>& visit,
                     std::size_t entries_max = 16) const;

  // How much a session holds and waits for, shard by shard. It takes every shard's lock once, for
  // the time of a look-up. Nothing for a session that is not there.
  Owned owned(SessionId session) const;

  // What was done and what there is, summed over the shards one by one.
  Stats stats() const;

  // Calls `visit` for the latest of what happened and is still kept, the latest first, if it
  // matches. No lock is held during the calls, and none for longer than it takes to copy 64 KiB.
  // What was visited rests on the returned position.
  Position history(const HistoryQuery& query,
                   const std::function<void(const KeyEvent&)>& visit) const;

  // The oldest wait and hold and the longest queue, as the sweeper last found them: it looks at
  // all that there is once in age_interval, at 65,536 keys and waiters or an eighth of them then.
  Ages ages() const;

  // Looks at everything that is kept, shard by shard: the name of an invariant that is broken and
  // what breaks it, or an empty string. For tests: it takes as long as there is much.
  std::string check() const;

  // Settles every wait as closed, and answers closed to whoever asks for something new. What is
  // held stays held for its lease, and can be renewed and released until the engine is destroyed.
  void close();
  // Blocks until every listener has heard what was settled before: after close(), a listener that
  // has come out of this is called no more. Waits for the journal, if there is one. It does not
  // know of what other threads have settled and are about to tell: commit their batches, and have
  // their calls return, before this.
  void drain_notifications();

  // Whether everything up to `position` is durable; wait_durable() blocks until it is, and returns
  // false when it never will be: the journal has failed.
  bool is_durable(Position position) const;
  bool wait_durable(Position position);

  // Whether grants can be kept: accepting when there is no journal.
  Journal::State journal_state() const;
  // As the journal says: see Journal. Without one, never and nothing.
  bool journal_is_behind() const;
  Duration storage_wait() const;

  // Ends what has fallen due and forgets idle keys; returns when it is needed next. The sweeper
  // does this by itself; a simulation that moves its own clock calls it by hand.
  Time sweep();

  Time now() const;

 private:
  friend class Batch;

  GrantResult acquire_in_queue(const AcquireRequest& request, std::stop_token stop);
  void start_renewer();
  HeldResult kept(const std::vector<SetItem>& keys, const Holder& holder, const Grant& grant,
                  OnLost on_lost);

  std::unique_ptr<detail::EngineCore> core_;
  std::once_flag renewer_started_;
  std::shared_ptr<detail::HoldRenewer> renewer_;  // null until something is kept
};

}  // namespace lockd
