#include "lockd/stats.h"

namespace lockd {

Stats& Stats::operator+=(const Stats& other) noexcept {
  grants += other.grants;
  contended += other.contended;
  renewals += other.renewals;
  releases += other.releases;
  expiries += other.expiries;
  disconnects += other.disconnects;
  queued += other.queued;
  timeouts += other.timeouts;
  cancels += other.cancels;
  refusals.held += other.refusals.held;
  refusals.max_keys += other.refusals.max_keys;
  refusals.max_waiters += other.refusals.max_waiters;
  refusals.limit_mismatch += other.refusals.limit_mismatch;
  locks_held += other.locks_held;
  semaphore_holders += other.semaphore_holders;
  lock_waiters += other.lock_waiters;
  semaphore_waiters += other.semaphore_waiters;
  keys += other.keys;
  idle_keys += other.idle_keys;
  wait_time += other.wait_time;
  hold_time += other.hold_time;
  expiry_lag += other.expiry_lag;
  return *this;
}

}  // namespace lockd
