// The interface through which an observer sees what happens to keys, as it happens.
//
// Events (lockd/journal.h) are outcomes, as few as rebuild the state. Key events are for people:
// they tell of queues as well as of holds, who it was and how long it took, and leave out what is
// frequent and dull: renewals, and who asks again and gets its own grant or place back. What a
// secret has is then the session's that asked last.
//
// What is rare is passed to an observer always: `expired`, `revoked`, `refused`, `slow_wait` and
// `slow_hold`. The rest only while somebody looks.
//
// Every wait begins with `queued` and ends with `granted` or `gave_up`; every hold begins with
// `granted` and ends with `released`, `expired`, `disconnected` or `revoked`. Of one key they come
// in the order in which they happened.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockd/journal.h"
#include "lockd/types.h"

namespace lockd {

struct KeyEvent {
  enum class Type : std::uint8_t {
    queued,        // joined the queue
    granted,       // a hold began; `lasted` is the wait, zero if there was none
    released,      // a hold ended, by its holder; `lasted` is how long it was held
    expired,       // by its lease
    disconnected,  // with its session, or because its client had gone before it was told
    revoked,       // by an admin: `reason` and `by`
    gave_up,       // left the queue without a grant; `lasted` is the wait, `outcome` is why
    refused,       // did not get what it asked for, because of a cap; `outcome` says which
    slow_wait,     // a wait has passed the age that is slow; `lasted` is how long it is by now
    slow_hold,     // likewise a hold
    resized,       // a semaphore's limit was set to `limit`, by an admin: `reason` and `by`
  };

  Type type;
  Kind kind = Kind::lock;
  // Of `gave_up`: timeout, cancelled, closed, or ok when its name got a permit by another place.
  // Of `refused`: max_keys, max_waiters, max_holds or max_client_holds.
  Outcome outcome = Outcome::ok;
  std::string_view key{};       // valid during the call that passes it
  std::string holder{};         // a name, or "tcp:<session>"
  ClientRef client{};           // who that says it is; null: it does not
  SessionId session = 0;        // of a session that is there: which
  Fence fence = 0;              // of a hold
  Mode mode = Mode::exclusive;  // of a lock's hold or place
  std::uint32_t permits = 1;    // of a semaphore's
  Duration ttl{};               // the lease as asked for
  Duration lasted{};            // the wait or the hold that is over
  // Tells the places of a key's queue apart while they last: of `queued` and `gave_up`, and of
  // `granted`, where 0 is a grant without a wait.
  std::uint32_t place = 0;
  // Of a hold of a session that was taken from it, by `expired` or `revoked`: what its owner knows
  // it by; 0 if it was never told. For whoever tells the owner; never shown.
  std::uint64_t secret = 0;
  Time at{};
  std::string reason{};  // why an admin did it
  std::string by{};      // and who that was

  // The key, right after it.
  std::uint32_t limit = 1;
  std::uint32_t holders = 0;
  std::uint32_t waiters = 0;
};

class Observer {
 public:
  // Whether anybody looks; nobody does at first, and then only what is rare is collected. Any
  // thread may say so. Each shard notices with its next operation: a listing that begins after
  // look(true), and what occurs from then on, together leave nothing out; what is in the listing
  // may be told again.
  void look(bool on) noexcept { observing_.store(on, std::memory_order_relaxed); }
  bool is_observing() const noexcept { return observing_.load(std::memory_order_relaxed); }

  // Nobody may be told before `position` is durable (0 without a journal). Called by any thread
  // with a shard's lock held: it must be quick, and must not call the engine. Calls for different
  // shards come at the same time. The last come from the engine's destructor.
  virtual void on_key_events(std::span<const KeyEvent> key_events, Position position) noexcept = 0;

 protected:
  ~Observer() = default;

 private:
  std::atomic<bool> observing_{false};
};

}  // namespace lockd
