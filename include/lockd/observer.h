// Observer: receives key events, for audit logs, dashboards and histories.
//
// Journal events (lockd/journal.h) are the minimum that rebuilds the state. Key events are for
// people: they cover queues as well as holds, with clients and durations. They omit renewals and
// repeated requests that return an existing grant or place; a repeated request with a secret moves
// the hold or place to the requesting session.
//
// Rare events are always passed: `expired`, `revoked`, `refused`, `slow_wait` and `slow_hold`. The
// others are passed only after observe(true).
//
// Every wait begins with `queued` and ends with `granted` or `gave_up`; every hold begins with
// `granted` and ends with `released`, `expired`, `disconnected` or `revoked`. Events of one key are
// in order.
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
    queued,        // a request joined the queue
    granted,       // a hold began; `lasted` is the wait, or zero
    released,      // the holder released the hold; `lasted` is its duration, as for the next three
    expired,       // the lease of a hold expired
    disconnected,  // a hold ended with its session, or before it was delivered
    revoked,       // an admin ended a hold: see `reason` and `by`
    gave_up,       // a request left the queue without a grant; `lasted` is the wait
    refused,       // a request was rejected because of a cap: see `outcome`
    slow_wait,     // a wait exceeded EngineOptions::slow_wait; `lasted` is its age
    slow_hold,     // a hold exceeded EngineOptions::slow_hold; `lasted` is its age
    resized,       // an admin set a semaphore's limit to `limit`: see `reason` and `by`
  };

  Type type;
  Kind kind = Kind::lock;
  // gave_up: timeout, cancelled, closed, or ok if the same name was granted by another place.
  // refused: max_keys, max_waiters, max_holds or max_client_holds.
  Outcome outcome = Outcome::ok;
  std::string_view key{};       // valid during the call that passes it
  std::string holder{};         // a name, or "tcp:<session>"
  ClientRef client{};           // null: not identified
  SessionId session = 0;        // 0 if the session has ended or the holder is a name
  Fence fence = 0;              // of the hold
  Mode mode = Mode::exclusive;  // of a lock's hold or place
  std::uint32_t permits = 1;    // of a semaphore's hold or place
  Duration ttl{};               // the requested lease
  Duration lasted{};
  // queued, gave_up, granted: identifies the place among the current places of the key; 0 in
  // `granted` if there was no wait.
  std::uint32_t place = 0;
  // expired, revoked: the secret of a session's hold, with which the server notifies the holder; 0
  // if the hold was not delivered. Never shown.
  std::uint64_t secret = 0;
  Time at{};
  std::string reason{};  // the admin's reason
  std::string by{};      // the admin

  // The key right after the event.
  std::uint32_t limit = 1;
  std::uint32_t holders = 0;
  std::uint32_t waiters = 0;
};

class Observer {
 public:
  // Enables or disables all events but the rare ones; initially disabled. Thread-safe. Each shard
  // applies it with its next operation. A listing that starts after observe(true), together with
  // the events from then on, is complete; events may repeat what the listing has.
  void observe(bool on) noexcept { observing_.store(on, std::memory_order_relaxed); }
  bool is_observing() const noexcept { return observing_.load(std::memory_order_relaxed); }

  // The observer must not disclose the events before `position` is durable (0 without a journal).
  // Called by any thread under a shard's lock, concurrently for different shards: it must be quick
  // and must not call the engine. The engine's destructor makes the last calls.
  virtual void on_key_events(std::span<const KeyEvent> key_events, Position position) noexcept = 0;

 protected:
  ~Observer() = default;

 private:
  std::atomic<bool> observing_{false};
};

}  // namespace lockd
