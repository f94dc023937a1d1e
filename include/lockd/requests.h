// The engine's requests and results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockd/journal.h"
#include "lockd/types.h"

namespace lockd {

struct AcquireRequest {
  std::string_view key;
  Holder holder;
  Duration ttl;     // the lease: the grant lasts this long unless renewed
  Duration wait{};  // the longest time in the queue; zero does not wait
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;  // the permits of a semaphore; 1 for a lock
  // The purpose and the origin of a request by name, shown to people. A repeated request does not
  // change them. A session's requests use Session::client instead.
  std::string_view note{};
  std::string_view peer{};
  Mode mode = Mode::exclusive;  // locks only
  std::uint32_t permits = 1;    // semaphores: how many permits the hold takes
};

// Two-phase acquisition joins the queue now and waits later, or never. For sessions only: the place
// ends with its session. At most one place per session, kind and key.
struct EnqueueRequest {
  std::string_view key;
  Holder holder;
  Duration ttl;
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
};

// One key of a request for several.
struct SetItem {
  SetItem(std::string_view key) : key(key) {}    // NOLINT: a key alone is an exclusive lock
  SetItem(const char* key) : key(key) {}         // NOLINT
  SetItem(const std::string& key) : key(key) {}  // NOLINT
  SetItem(std::string_view key, Kind kind, Mode mode = Mode::exclusive, std::uint32_t limit = 1,
          std::uint32_t permits = 1)
      : key(key), kind(kind), mode(mode), limit(limit), permits(permits) {}

  std::string_view key;
  Kind kind = Kind::lock;
  Mode mode = Mode::exclusive;
  std::uint32_t limit = 1;
  std::uint32_t permits = 1;
};

// Acquires all keys or none, in one step, under one fence and one lease. The holder must be a name.
// With a wait, the request joins every queue in one step, and is granted when it is first in all
// queues and all keys have room.
struct AcquireSetRequest {
  std::vector<SetItem> keys;  // 1 to kKeysPerSetMax; no duplicate kind and key
  Holder holder;
  Duration ttl;
  Duration wait{};  // at most EngineOptions::set_wait_max
  std::string_view note{};
  std::string_view peer{};
};

// Identifies one name's holds of several keys under one fence.
struct SetId {
  std::vector<SetItem> keys;  // modes, limits and permits are ignored
  Holder holder;
  Fence fence;
};

// Identifies one hold. A caller that knows it may renew and release the hold.
struct HoldId {
  std::string_view key;
  Holder holder;
  Fence fence;
  Kind kind = Kind::lock;
};

// Ends holds on behalf of an admin. The next holder gets a larger fence.
struct RevokeRequest {
  std::string_view key;
  std::optional<Fence> fence{};  // unset: all holds that exist when the request starts
  Kind kind = Kind::lock;
  // The reason and the admin, for observers. UTF-8 without control characters, at most 256 bytes.
  std::string_view reason{};
  std::string_view by{};
};

// The state of a key that prevented a grant.
struct Conflict {
  std::string holder;  // a name, or "tcp:<session>"; for a semaphore, its latest holder
  SessionId session = 0;
  ClientRef client{};
  Fence fence = 0;
  Time expires_at{};
  std::uint32_t limit = 0;
  std::uint32_t holders = 0;
  std::uint32_t waiters = 0;
  Mode mode = Mode::exclusive;  // of the hold, if the key is a lock
  std::uint32_t permits = 0;    // in use, if the key is a semaphore
};

// One key that prevented a request for several keys.
struct SetConflict {
  std::size_t item = 0;  // index in the request's keys
  bool own = false;      // held by the requesting holder
  Conflict conflict{};   // has no holder if the first waiter of the key also waits for other keys
};

// The fence of the current grant; or, if the key is free, the largest that can have been granted.
struct FenceStatus {
  bool held = false;
  Fence fence = 0;
};

// The number of a session's holds and places.
struct Owned {
  std::uint64_t holds = 0;
  std::uint64_t places = 0;  // in queues
  Position position = 0;     // the journal position at which these numbers are durable
};

class Listener;

// The result of one wait.
struct WaitResult {
  Listener* listener = nullptr;
  std::uint64_t id = 0;  // the id passed with the queued request
  Outcome outcome = Outcome::ok;
  Grant grant{};  // if `outcome` is ok
  Duration waited{};
  Position position = 0;  // the journal position at which the result is durable
};

// Receives the results of queued requests.
class Listener {
 public:
  // Called exactly once for each request that returned `queued`, on any thread and without locks,
  // possibly before the call that queued the request returns.
  //
  // It may use a Batch but must not block, because the thread may be the sweeper's or the
  // journal's. These block: Engine::acquire() when it queues, wait_durable(),
  // drain_notifications(); with a journal also renew(), release(), fence(), status() and every
  // acquire().
  //
  // Releasing the grant here notifies the next waiter within the same commit(), recursively through
  // the whole queue. Where queues may be long, record the result here and release elsewhere.
  virtual void on_wait_done(const WaitResult& result) noexcept = 0;

  // when_durable: on_wait_done() runs once the result is durable.
  // at_commit: it runs in the commit() that caused the result, and the listener must not disclose
  // the result before `result.position` is durable.
  enum class Delivery : std::uint8_t { when_durable, at_commit };
  Delivery delivery() const { return delivery_; }

 protected:
  explicit Listener(Delivery delivery = Delivery::when_durable) : delivery_(delivery) {}
  ~Listener() = default;

 private:
  const Delivery delivery_;
};

// Identifies one wait, for cancel().
struct WaitId {
  Listener* listener = nullptr;
  std::uint64_t id = 0;
  std::uint32_t slot = 0;   // set by the shard
  std::uint32_t shard = 0;  // set by the engine
};

}  // namespace lockd
