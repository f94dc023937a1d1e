// The engine's requests and results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockd/journal.h"
#include "lockd/types.h"

namespace lockd {

// One key of a request. A key alone is an exclusive lock.
struct KeyItem {
  KeyItem(std::string_view key) : key(key) {}    // NOLINT
  KeyItem(const char* key) : key(key) {}         // NOLINT
  KeyItem(const std::string& key) : key(key) {}  // NOLINT
  KeyItem(std::string_view key, Kind kind, Mode mode = Mode::exclusive, std::uint32_t limit = 1,
          std::uint32_t permits = 1)
      : key(key), kind(kind), mode(mode), limit(limit), permits(permits) {}

  std::string_view key;
  Kind kind = Kind::lock;
  Mode mode = Mode::exclusive;  // locks only
  std::uint32_t limit = 1;      // the permits of a semaphore; 1 for a lock
  std::uint32_t permits = 1;    // semaphores: how many permits the hold takes
};

// A lock that other holders may share.
inline KeyItem shared(std::string_view key) { return {key, Kind::lock, Mode::shared}; }

inline KeyItem semaphore(std::string_view key, std::uint32_t limit, std::uint32_t permits = 1) {
  return {key, Kind::semaphore, Mode::exclusive, limit, permits};
}

// The keys of a request: one, which is stored inside, or a view of several, which must outlive it.
// Copies may outlive the original.
class KeyItems {
 public:
  KeyItems(const KeyItem& item) : one_(item) {}    // NOLINT: one key is a set of one
  KeyItems(std::string_view key) : one_(key) {}    // NOLINT
  KeyItems(const char* key) : one_(key) {}         // NOLINT
  KeyItems(const std::string& key) : one_(key) {}  // NOLINT
  KeyItems(std::span<const KeyItem> items)         // NOLINT
      : several_(items.data()), size_(items.size()) {}
  KeyItems(const std::vector<KeyItem>& items)  // NOLINT
      : KeyItems(std::span<const KeyItem>(items)) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const KeyItem& operator[](std::size_t i) const { return begin()[i]; }
  const KeyItem& front() const { return *begin(); }
  const KeyItem* begin() const { return several_ == nullptr ? &one_ : several_; }
  const KeyItem* end() const { return begin() + size_; }

  // The index of the first item whose kind and key an earlier item has; size() if there is none.
  std::size_t find_duplicate() const {
    for (std::size_t i = 1; i < size_; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (is_same((*this)[i], (*this)[j])) return i;
      }
    }
    return size_;
  }

 private:
  static bool is_same(const KeyItem& a, const KeyItem& b) {
    if (a.kind != b.kind || a.key.size() != b.key.size()) return false;
    // Keys of one request often differ in their last byte alone.
    return a.key.empty() || (a.key.back() == b.key.back() && a.key == b.key);
  }

  KeyItem one_{std::string_view()};
  const KeyItem* several_ = nullptr;  // null: one_
  std::size_t size_ = 1;
};

// Acquires all keys or none, in one step, under one fence and one lease. With a wait, a request for
// several keys joins every queue in one step, and is granted when it is first in all queues and all
// keys have room.
struct AcquireRequest {
  KeyItems keys;  // 1 to kKeysPerSetMax; no duplicate kind and key
  Holder holder;  // a name, if there are several keys
  Duration ttl;   // the lease: the grant lasts this long unless renewed
  // The longest time in the queue; zero does not wait. For several keys at most
  // EngineOptions::set_wait_max.
  Duration wait{};
  // The purpose and the origin of a request by name, shown to people. A repeated request does not
  // change them. A session's requests use Session::client instead.
  std::string_view note{};
  std::string_view peer{};
};

// Identifies one hold, or one name's holds of several keys under one fence. A caller that knows it
// may renew and release them.
struct HoldId {
  KeyItems keys;  // modes, limits and permits are ignored
  Holder holder;
  Fence fence;
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
  std::size_t item = 0;  // index in the request's keys
  bool own = false;      // of several keys: held by the requesting holder
  // Empty if no holder is in the way: the first waiter of the key also waits for other keys.
  std::string holder{};  // a name, or "tcp:<session>"; for a semaphore, its latest holder
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

// The fence of the current grant; or, if the key is free, the largest that can have been granted.
struct FenceStatus {
  bool held = false;
  Fence fence = 0;
};

// The result of release(). For one key, the outcome says whether it was released; for several it is
// ok if the request was executed.
struct ReleaseResult {
  Outcome outcome = Outcome::ok;
  std::uint64_t released = 0;  // bit i: key i was held and has been released

  bool has_released(std::size_t i) const { return (released >> i & 1) != 0; }
  explicit operator bool() const { return outcome == Outcome::ok; }
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
