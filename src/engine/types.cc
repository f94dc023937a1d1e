// Functions of the plain types in include/lockd.
#include "lockd/types.h"
#include "base/clock_ns.h"
#include "lockd/clock.h"
#include "lockd/stats.h"

namespace lockd {

std::string_view describe(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::ok: return "done";
    case Outcome::queued: return "in the queue";
    case Outcome::held: return "held by someone else";
    case Outcome::timeout: return "the wait timed out";
    case Outcome::cancelled: return "the wait was cancelled";
    case Outcome::taken_over: return "a later connection has taken it over";
    case Outcome::closed: return "the engine is closed";
    case Outcome::not_holder: return "held, but not by this holder under this fence";
    case Outcome::stale: return "held under a larger fence";
    case Outcome::expired: return "not held: it was released, or its lease is over";
    case Outcome::max_keys: return "no room for another key";
    case Outcome::max_waiters: return "no room for another waiter";
    case Outcome::max_holds: return "no room for another hold";
    case Outcome::max_client_holds: return "no room for another hold of this client";
    case Outcome::limit_mismatch: return "the semaphore has another limit";
    case Outcome::already_enqueued: return "already in the queue";
    case Outcome::not_enqueued: return "not in the queue";
    case Outcome::storage: return "the journal cannot take it";
    case Outcome::not_leader: return "this server does not lead";
    case Outcome::fences_exhausted: return "no fence is left below 2^53";
    case Outcome::invalid_key: return "a key is 1 to 256 bytes of UTF-8 without control characters";
    case Outcome::invalid_holder:
      return "a holder is 1 to 256 bytes of UTF-8 without control characters";
    case Outcome::invalid_ttl: return "a lease is longer than zero";
    case Outcome::invalid_wait: return "a wait is not negative";
    case Outcome::invalid_limit: return "a limit is 1 to 2147483647, and 1 for a lock";
    case Outcome::mode_mismatch: return "held by this holder in the other mode";
    case Outcome::permits_mismatch: return "held by this holder with other permits";
    case Outcome::invalid_mode: return "a semaphore has no mode";
    case Outcome::invalid_permits: return "permits are 1 to the limit, and 1 for a lock";
    case Outcome::invalid_set: return "a set is 1 to 64 different keys";
    case Outcome::invalid_note:
      return "a note is at most 256 bytes of UTF-8 without control characters, a peer at most 64";
  }
  return "unknown";
}

Stats& Stats::operator+=(const Stats& other) noexcept {
  grants += other.grants;
  contended += other.contended;
  renewals += other.renewals;
  releases += other.releases;
  expiries += other.expiries;
  disconnects += other.disconnects;
  revocations += other.revocations;
  queued += other.queued;
  timeouts += other.timeouts;
  cancels += other.cancels;
  refusals.held += other.refusals.held;
  refusals.max_keys += other.refusals.max_keys;
  refusals.max_waiters += other.refusals.max_waiters;
  refusals.max_holds += other.refusals.max_holds;
  refusals.limit_mismatch += other.refusals.limit_mismatch;
  history_dropped += other.history_dropped;
  locks_held += other.locks_held;
  semaphore_holders += other.semaphore_holders;
  shared_holds += other.shared_holds;
  lock_waiters += other.lock_waiters;
  semaphore_waiters += other.semaphore_waiters;
  keys += other.keys;
  idle_keys += other.idle_keys;
  wait_time += other.wait_time;
  hold_time += other.hold_time;
  expiry_lag += other.expiry_lag;
  return *this;
}

SystemClock::SystemClock() : SystemClock(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME)) {}

// The offset may have wrapped; the addition wraps back.
Time SystemClock::now() const noexcept { return {offset_ns_ + clock_ns(CLOCK_BOOTTIME)}; }

}  // namespace lockd
