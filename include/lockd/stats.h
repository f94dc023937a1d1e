// What an engine has done and what it has, in numbers: see Engine::stats().
//
// Each shard keeps its own under the lock that it holds anyway, so to be counted costs a few
// nanoseconds and to be summed up one hold of each shard's lock. They tell of what was done,
// whether or not it is durable yet.
#pragma once

#include <cstdint>

#include "lockd/histogram.h"

namespace lockd {

struct Stats {
  // Since the engine began; what was recovered is not counted.
  std::uint64_t grants = 0;
  std::uint64_t contended = 0;    // of the grants: those that had waited in a queue
  std::uint64_t renewals = 0;     // leases moved: by renew, by asking again, by awaiting one's turn
  std::uint64_t releases = 0;     // holds ended by their holders
  std::uint64_t expiries = 0;     // by their leases
  std::uint64_t disconnects = 0;  // with their sessions, or before anybody was told
  std::uint64_t revocations = 0;  // by an admin
  std::uint64_t queued = 0;       // requests that joined a queue
  std::uint64_t timeouts = 0;     // places left because the wait ran out
  std::uint64_t cancels = 0;      // places given up: cancelled, with the session, by the closing

  // Requests that were refused, and why.
  struct Refusals {
    std::uint64_t held = 0;  // they did not want to wait
    std::uint64_t max_keys = 0;
    std::uint64_t max_waiters = 0;
    std::uint64_t max_holds = 0;  // over all, or of one client
    std::uint64_t limit_mismatch = 0;
  } refusals{};

  // Key events that the history lacks: too many of their kind in one second.
  std::uint64_t history_dropped = 0;

  // Now.
  std::uint64_t locks_held = 0;
  std::uint64_t semaphore_holders = 0;
  std::uint64_t shared_holds = 0;  // of the locks held: by those who share them
  std::uint64_t lock_waiters = 0;
  std::uint64_t semaphore_waiters = 0;
  std::uint64_t keys = 0;
  std::uint64_t idle_keys = 0;  // of the keys: those that nobody holds or waits for

  Histogram wait_time{};   // of the grants that had waited in a queue: how long
  Histogram hold_time{};   // of holds that have ended, by whatever cause: how long since the grant
  Histogram expiry_lag{};  // of holds that expired: how long after the end of the lease

  Stats& operator+=(const Stats& other) noexcept;
};

}  // namespace lockd
