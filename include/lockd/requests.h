// What is asked of the engine, and what comes back.
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
  Duration ttl;     // the lease: how long the grant lasts unless renewed
  Duration wait{};  // how long to wait in the queue; zero is a try
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;  // how many may hold a semaphore at once
  // What people are shown beside the holder's name, for as long as it waits and holds: what for,
  // and where the request came from. A name that asks again keeps what it said first. Of a session
  // Session::client tells instead.
  std::string_view note{};
  std::string_view peer{};
  Mode mode = Mode::exclusive;  // of a lock
  std::uint32_t permits = 1;    // of a semaphore: how many of its limit the hold takes
};

// Two-phase acquisition joins the queue now and waits later, or never. Only sessions may: the
// place belongs to the session, and goes with it. One per session, kind and key. Who it says it is,
// Session::client tells.
struct EnqueueRequest {
  std::string_view key;
  Holder holder;
  Duration ttl;
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
};

// One of the keys that a request for several names.
struct SetItem {
  SetItem(std::string_view key) : key(key) {}    // NOLINT: a key alone is a lock, held alone
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

// Several keys in one step: all of them or none, under one fence and one lease. The holder is a
// name. With a wait it joins every queue at once, and is granted when it is the first in all of
// them and all have room.
struct AcquireSetRequest {
  std::vector<SetItem> keys;  // 1 to kKeysPerSetMax; no kind and key twice
  Holder holder;
  Duration ttl;
  Duration wait{};  // at most EngineOptions::set_wait_max
  std::string_view note{};
  std::string_view peer{};
};

// Names holds that a name has of several keys, under one fence.
struct SetId {
  std::vector<SetItem> keys;  // modes, limits and permits do not matter
  Holder holder;
  Fence fence;
};

// Names one possession. Whoever can name it may renew it and release it.
struct HoldId {
  std::string_view key;
  Holder holder;
  Fence fence;
  Kind kind = Kind::lock;
};

// Ends a hold against its holder's will, for an admin. Whoever the hold is passed on to gets a
// larger fence, as ever.
struct RevokeRequest {
  std::string_view key;
  std::optional<Fence> fence{};  // none: all holds that there are when it begins
  Kind kind = Kind::lock;
  // Why, and who does it: for people. UTF-8 without control characters, at most 256 bytes each.
  std::string_view reason{};
  std::string_view by{};
};

// Who stands in the way of a request that was refused, and how many are in the queue.
struct Conflict {
  std::string holder;  // a name, or "tcp:<session>"; of a semaphore, its latest holder
  SessionId session = 0;
  ClientRef client{};
  Fence fence = 0;
  Time expires_at{};
  std::uint32_t limit = 0;
  std::uint32_t holders = 0;
  std::uint32_t waiters = 0;
  Mode mode = Mode::exclusive;  // of a lock that is held
  std::uint32_t permits = 0;    // of a semaphore: how many are in use
};

// One key that stands in the way of a request for several.
struct SetConflict {
  std::size_t item = 0;  // which of the request's
  bool own = false;      // held by the very holder that asks
  Conflict conflict{};   // without a holder: the first of its queue waits for other keys too
};

// What `fence` answers: the grant in force; or, when there is none, the largest fence that can have
// been granted for the key.
struct FenceStatus {
  bool held = false;
  Fence fence = 0;
};

// What a session has.
struct Owned {
  std::uint64_t holds = 0;
  std::uint64_t places = 0;  // in queues
  Position position = 0;     // what that rests on
};

class Listener;

// How one wait ended.
struct WaitResult {
  Listener* listener = nullptr;
  std::uint64_t id = 0;  // as given when the request was queued
  Outcome outcome = Outcome::ok;
  Grant grant{};  // when `outcome` is ok
  Duration waited{};
  Position position = 0;  // what it rests on
};

// Hears how its waits ended.
class Listener {
 public:
  // Called exactly once for each request that was answered `queued`, on any thread, with no lock
  // held. Possibly before the call that queued the request has returned.
  //
  // It may use a Batch, but must not wait: the thread may be the sweeper's or the journal's, the
  // very one that it would wait for. Engine::acquire() waits when it queues, wait_durable() and
  // drain_notifications() do, and with a journal also renew(), release(), fence(), status() and
  // every acquire().
  //
  // To release what was granted notifies the next waiter within that commit(), and so on, as deep
  // as the queue is long: where queues may be long, take note here and release elsewhere.
  virtual void on_wait_done(const WaitResult& result) noexcept = 0;

  // Whether it hears once the outcome is durable, or already with the commit that caused it: then
  // it keeps the outcome to itself until `result.position` is durable.
  enum class Called : std::uint8_t { when_durable, at_commit };
  bool is_called_at_commit() const { return called_ == Called::at_commit; }

 protected:
  explicit Listener(Called called = Called::when_durable) : called_(called) {}
  ~Listener() = default;

 private:
  const Called called_;
};

// Names one wait, so that it can be given up.
struct WaitId {
  Listener* listener = nullptr;
  std::uint64_t id = 0;
  std::uint32_t slot = 0;   // filled in by the shard
  std::uint32_t shard = 0;  // filled in by the engine
};

}  // namespace lockd
