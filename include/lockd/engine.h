// Engine: embedded FIFO locks and semaphores, by name, with leases and fencing tokens.
//
//   lockd::Engine engine({.shards = 16});
//   auto grant = engine.acquire({.keys = "stone-42", .holder = "cart-7", .ttl = 30s, .wait = 5s});
//   if (!grant) return show(describe(grant.outcome));
//   store.write(stone, grant->fence);     // the store refuses a fence smaller than it has seen
//   engine.release({.keys = "stone-42", .holder = "cart-7", .fence = grant->fence});
//
// Every key has one FIFO queue for all kinds of requests. A grant lasts for its lease and can be
// renewed; after the lease expires, the engine grants the key to the next waiter within a few
// milliseconds, never early. The fences of a key strictly increase.
//
// Thread-safe, except the destructor. Calls return an Outcome and do not throw for expected
// results. If memory runs out in the middle of a change, the process ends (std::terminate), so a
// partial change is never visible and the journal has every acknowledged result. Engines in one
// process are independent.
//
// With a journal, the results of acquire(), renew(), release(), fence() and status() survive a
// crash: the calls wait until the results are durable. After the journal has failed they return
// only `storage`, including calls that are blocked in a queue. Other calls do not wait; those that
// read keys return the journal position at which their results are durable.
//
// A child after fork() must not use the parent's engine, because it lacks the engine's threads.
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

// The work of one pass of the sweeper.
struct Sweep {
  std::uint32_t shards = 0;          // with expired leases or waits
  std::uint64_t waits_ended = 0;     // granted or timed out
  std::uint64_t keys_forgotten = 0;  // idle keys
  Duration took{};
};

struct EngineOptions {
  std::uint32_t shards = 64;  // a power of two, 1 to 64
  std::uint64_t keys_max = 1'000'000;
  std::uint32_t waiters_max = 0;  // per key; 0: no limit
  // With a full queue, a request without a wait ends with max_waiters instead of held.
  bool refuses_tries_at_full_queue = false;
  // An idle semaphore keeps its limit, so requests with another limit end with limit_mismatch until
  // the key is forgotten. Otherwise the next request sets the limit.
  bool keeps_idle_limits = false;
  // Maximum of holds plus places, in total and per client (a session, or a name). 0: no limit.
  // A limit of 262,144 or more may reject requests up to 0.1 % early.
  std::uint64_t holds_max = 0;
  std::uint32_t holds_per_client_max = 0;
  Duration ttl_max{};     // longer leases are cut to this; zero: no limit
  Fence fence_floor = 0;  // issue only larger fences, regardless of the journal
  // Maximum wait of a request for several keys; longer waits are cut to this.
  Duration set_wait_max = std::chrono::seconds(600);
  Duration idle_max = std::chrono::seconds(60);       // an idle key is forgotten after this
  Duration gc_interval = std::chrono::seconds(5);     // between passes that forget idle keys
  Duration sweep_interval = std::chrono::seconds(1);  // the longest sleep between deadlines
  // Between scans for ages(); zero: never.
  Duration age_interval{};
  // A wait or hold older than this is recorded once as slow; zero: never. Needs age_interval.
  Duration slow_wait{};
  Duration slow_hold{};
  // Bytes of key events kept for history(); 0: none. Small sizes are rounded up.
  std::size_t history_size = 0;

  // These must outlive the engine.
  Clock* clock = nullptr;        // null: the system's clock
  Journal* journal = nullptr;    // null: nothing is durable
  Observer* observer = nullptr;  // may be null
  // Called by the journal's thread, without locks, when the durable position or the journal's state
  // has changed: a server checks which answers it can send. Must not block.
  std::function<void()> on_durable{};
  // Called by the sweeper or sweep(), without locks. Must not block.
  std::function<void(const Sweep&)> on_sweep{};
  bool sweeper = true;          // false: the caller must call sweep()
  std::uint64_t hash_seed = 0;  // 0: random
};

// The result of acquire() and renew(): one grant for all keys, or the keys that prevented it. For
// renew() this is the first key that is not held.
struct [[nodiscard]] AcquireResult {
  Outcome outcome = Outcome::ok;
  Grant grant{};
  std::vector<Conflict> conflicts{};

  explicit operator bool() const { return outcome == Outcome::ok; }
  const Grant* operator->() const { return &grant; }
};

// The result of fence(). Not ok after the journal has failed, because the state may be lost.
struct [[nodiscard]] FenceResult {
  Outcome outcome = Outcome::ok;
  FenceStatus status{};

  explicit operator bool() const { return outcome == Outcome::ok; }
  const FenceStatus* operator->() const { return &status; }
};

// The most holds, and the most waiters, that are listed for one key.
inline constexpr std::size_t kEntriesMax = 2048;

struct HoldStatus {
  std::string holder;  // a name, or "tcp:<session>"
  SessionId session = 0;
  ClientRef client{};
  Fence fence = 0;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  Duration held{};
  Duration ttl{};  // the requested lease
  Duration remaining{};
};

// The result of revoke(). ok: the holds have ended; stale: the key is held under other fences;
// expired: the key is not held.
struct [[nodiscard]] RevokeResult {
  Outcome outcome = Outcome::ok;
  std::vector<HoldStatus> holds{};  // before the end; at most kEntriesMax
  std::uint64_t count = 0;          // of all ended holds

  explicit operator bool() const { return outcome == Outcome::ok; }
};

struct WaiterStatus {
  std::string holder;
  SessionId session = 0;
  ClientRef client{};
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  std::uint32_t keys = 1;  // number of keys in its request
  Duration waited{};
};

struct KeyStatus {
  Kind kind = Kind::lock;
  std::string key;
  std::uint32_t limit = 1;
  std::uint32_t holders = 0;
  std::uint32_t waiters = 0;
  std::uint32_t permits = 0;  // in use, if it is a semaphore
  // The latest current grant's; without one, an earlier grant's (for a lock, the last one).
  Fence fence = 0;
  Duration idle{};                    // without holder and waiter
  std::vector<HoldStatus> holds{};    // in the order of their fences
  std::vector<WaiterStatus> queue{};  // in the order of the queue
};

// The result of status(). ok without a key: not in use lately. Not ok: as for FenceResult.
struct [[nodiscard]] StatusResult {
  Outcome outcome = Outcome::ok;
  std::optional<KeyStatus> key{};

  explicit operator bool() const { return key.has_value(); }
  const KeyStatus* operator->() const { return &*key; }
};

// The progress of a listing in pieces; a new one starts at the beginning. A plain value that may be
// stored and used at any later time. Invalid values are harmless.
struct ListCursor {
  std::uint32_t shard = 0;
  std::uint64_t rank = 0;  // in the order of the shard's key hashes
  bool done = false;

  friend bool operator==(const ListCursor&, const ListCursor&) = default;
};

// Filters for history(); unset fields match everything.
struct HistoryQuery {
  std::string key{};
  std::string holder{};  // a name, or "tcp:<session>"
  std::string client{};  // ClientIdentity::name
  SessionId session = 0;
  std::optional<KeyEvent::Type> type{};
  Time since{};
  std::vector<std::string> prefixes{};  // the key starts with one of these
  std::size_t events_max = 100;

  friend bool operator==(const HistoryQuery&, const HistoryQuery&) = default;
};

// The oldest wait and hold and the longest queue: see Engine::ages(). Absent entries have no key.
struct Ages {
  struct OldestEntry {
    Kind kind = Kind::lock;
    std::string key{};
    Duration age{};
  };
  struct Queue {
    Kind kind = Kind::lock;
    std::string key{};
    std::uint32_t waiters = 0;
  };
  OldestEntry oldest_wait{};
  OldestEntry oldest_hold{};
  Queue longest_queue{};
};

namespace detail {
class EngineCore;
class HoldRenewer;
}  // namespace detail

class Engine {
 public:
  // Recovers from the journal, if there is one. Throws std::invalid_argument for options out of
  // range, and std::runtime_error if the journal contradicts itself.
  explicit Engine(const EngineOptions& options = {});

  // Calls close() and waits until the calls that are blocked in a queue have returned. Other
  // threads must make no other calls. Releases every Held, with the loss `closed`. Waits whose
  // results are not durable yet end with `closed`.
  ~Engine();

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Waits in the queue for up to `request.wait`. When `stop` fires, the call leaves the queue and
  // returns `cancelled`. If the name already holds the key, returns that grant with a renewed
  // lease, so retries are safe.
  //
  // Acquires several keys in one step, all or none. A name that holds all of them under one fence
  // gets that grant again; if it holds only some, the request is rejected. Each hold can be renewed
  // and released separately.
  AcquireResult acquire(const AcquireRequest& request, std::stop_token stop = {});

  // As acquire(), but returns a Held: the engine renews it, reports its loss and releases it at the
  // end of its scope. The holder must be a name, and should be unique: another request under the
  // same name shares the hold, and the first release ends it for both. Throws std::system_error if
  // no thread can be started.
  HeldResult hold(const AcquireRequest& request, std::stop_token stop = {}, OnLost on_lost = {});

  // Moves the end of the lease to now + `ttl`, or by default to now + the grant's own lease. Fails
  // if the lease has expired. Renews all of several holds or none.
  AcquireResult renew(const HoldId& hold, std::optional<Duration> ttl = {});

  // Releases the keys that are held.
  ReleaseResult release(const HoldId& hold);

  // For admins: ends one hold or all holds of a key.
  RevokeResult revoke(const RevokeRequest& request);
  // For admins: sets the limit of a held semaphore until it is idle. A larger limit grants to
  // waiters; a smaller one ends no holds. Requests may name this limit or the original one. Returns
  // `expired` if the semaphore is not held.
  Outcome resize(std::string_view key, std::uint32_t limit, std::string_view reason,
                 std::string_view by);

  FenceResult fence(std::string_view key);

  // The state of a key. Lists at most `entries_max` holds and waiters, and at most kEntriesMax; the
  // counts include all.
  StatusResult status(Kind kind, std::string_view key, std::size_t entries_max = 16);

  // Calls `visit` for every key, in no particular order and without locks. Keys that are created or
  // forgotten meanwhile may be missed. A shard's lock is held for a few hundred keys, or a few
  // thousand entries, at a time. An expired lease may be listed, with nothing remaining, until the
  // sweeper ends it. The results are durable at the returned position: see wait_durable().
  Position list(const std::function<void(const KeyStatus&)>& visit,
                std::size_t entries_max = 16) const;

  // list() in pieces: visits at most `keys_max` keys and advances `cursor`. A key that exists
  // during a whole listing is visited exactly once. Keys with equal hashes are never split between
  // pieces, so a piece may be larger.
  Position list_some(ListCursor& cursor, std::size_t keys_max,
                     const std::function<void(const KeyStatus&)>& visit,
                     std::size_t entries_max = 16) const;

  // The number of holds and places of a session, counted shard by shard.
  Owned owned(SessionId session) const;

  // The sum over all shards, which are read one by one.
  Stats stats() const;

  // Calls `visit` for the latest matching key events, the latest first, without locks. A shard's
  // lock is held only to copy 64 KiB at a time. The results are durable at the returned position.
  Position history(const HistoryQuery& query,
                   const std::function<void(const KeyEvent&)>& visit) const;

  // The oldest wait and hold and the longest queue, as the sweeper last found them. In each
  // age_interval it scans 65,536 keys and waiters, or an eighth of all if that is more.
  Ages ages() const;

  // For tests: checks all invariants, in time proportional to the engine's state. Returns the name
  // and details of a broken one, or an empty string.
  std::string check() const;

  // Ends every wait with `closed`; later requests return `closed`. Holds remain until their leases
  // expire, and can be renewed and released until the engine is destroyed.
  void close();
  // Blocks until every listener has been notified of all waits that ended before; with a journal,
  // until those results are durable. After close() and this, no listener is called again. Does not
  // cover uncommitted batches and running calls of other threads: let them finish first.
  void drain_notifications();

  // Whether everything up to `position` is durable. wait_durable() blocks until it is; it returns
  // false if the journal fails first.
  bool is_durable(Position position) const;
  bool wait_durable(Position position);

  // See Journal. Without a journal: `accepting`, false and zero.
  Journal::State journal_state() const;
  bool journal_is_behind() const;
  Duration storage_wait() const;

  // Ends expired leases and waits and forgets idle keys; returns the time of the next sweep. Only
  // for engines without a sweeper, such as those of simulations.
  Time sweep();

  Time now() const;

 private:
  friend class Batch;

  AcquireResult acquire_in_queue(const AcquireRequest& request, std::stop_token stop);
  void start_renewer();

  std::unique_ptr<detail::EngineCore> core_;
  std::once_flag renewer_started_;
  std::shared_ptr<detail::HoldRenewer> renewer_;  // null until the first hold()
};

}  // namespace lockd
