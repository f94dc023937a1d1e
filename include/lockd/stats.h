// Counters and gauges of an engine: see Engine::stats().
//
// Each shard counts under its own lock, which costs a few nanoseconds. The counters include changes
// that are not durable yet.
#pragma once

#include <cstdint>

#include "lockd/histogram.h"

namespace lockd {

struct Stats {
  // Counters since the engine was created. Recovered holds are not counted.
  std::uint64_t grants = 0;
  std::uint64_t contended = 0;    // grants after a wait in a queue
  std::uint64_t renewals = 0;     // by renew, a repeated request, or await_turn
  std::uint64_t releases = 0;     // holds ended by their holders
  std::uint64_t expiries = 0;     // holds ended by their leases
  std::uint64_t disconnects = 0;  // holds ended with their sessions, or withdrawn undelivered
  std::uint64_t revocations = 0;  // holds ended by an admin
  std::uint64_t queued = 0;       // requests that joined a queue
  std::uint64_t timeouts = 0;     // waits that timed out
  std::uint64_t cancels = 0;      // waits cancelled, ended with the session, or by close()

  // Rejected requests, by reason.
  struct Refusals {
    std::uint64_t held = 0;  // requests without a wait
    std::uint64_t max_keys = 0;
    std::uint64_t max_waiters = 0;
    std::uint64_t max_holds = 0;  // of the engine, or of one client
    std::uint64_t limit_mismatch = 0;
  } refusals{};

  // Key events missing from the history: more than its limit per second and kind.
  std::uint64_t history_dropped = 0;

  // Gauges.
  std::uint64_t locks_held = 0;
  std::uint64_t semaphore_holders = 0;
  std::uint64_t shared_holds = 0;  // holds of locks in shared mode
  std::uint64_t lock_waiters = 0;
  std::uint64_t semaphore_waiters = 0;
  std::uint64_t keys = 0;
  std::uint64_t idle_keys = 0;  // keys without holder and waiter

  Histogram wait_time{};   // time in the queue of grants that waited
  Histogram hold_time{};   // from grant to end, for holds ended by any cause
  Histogram expiry_lag{};  // from the end of the lease to the end of the hold, for expired holds

  Stats& operator+=(const Stats& other) noexcept;
};

}  // namespace lockd
