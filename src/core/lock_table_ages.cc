// How long waits and holds have lasted.
#include "core/lock_table.h"

#include <algorithm>
#include <string>

namespace lockd {

void LockTable::look_at_ages(Time now, AgeCursor& cursor, std::size_t steps,
                             LongestLasting& found) noexcept {
  now = std::max(now, now_);
  if (!cursor.keys.done) {
    return index_.walk(cursor.keys, steps, [&](Semaphore& semaphore) {
      if (!semaphore.holds.empty()) look_at_holds(semaphore, now, found);
    });
  }
  for (; steps > 0 && cursor.slot < slots_.slots(); --steps, ++cursor.slot) {
    if (Waiter* waiter = slots_.find(cursor.slot)) look_at_wait(*waiter, now, found);
  }
  cursor.done = cursor.slot >= slots_.slots();
}

void LockTable::look_at_holds(Semaphore& semaphore, Time now, LongestLasting& found) {
  const Holds& holds = semaphore.holds;
  const Hold* oldest = holds.front();
  for (Hold* hold = holds.front(); hold != nullptr; hold = holds.next(hold)) {
    if (hold->since < oldest->since) oldest = hold;
    const bool is_slow =
        options_.slow_hold > Duration::zero() && hold->held_at(now) >= options_.slow_hold;
    if (is_slow && !hold->slow) {
      hold->slow = true;
      stats_.slow(*hold, now);
    }
  }
  if (oldest->since < found.hold.since) {
    found.hold = {semaphore.kind, std::string(semaphore.key()), oldest->since};
  }
}

void LockTable::look_at_wait(Waiter& waiter, Time now, LongestLasting& found) {
  const Semaphore& semaphore = *waiter.semaphore;
  const bool is_slow =
      options_.slow_wait > Duration::zero() && now - waiter.since >= options_.slow_wait;
  if (is_slow && !waiter.slow) {
    waiter.slow = true;
    stats_.slow(waiter, now);
  }
  if (waiter.since < found.wait.since) {
    found.wait = {semaphore.kind, std::string(semaphore.key()), waiter.since};
  }
  if (semaphore.waiters > found.queue.waiters) {
    found.queue = {semaphore.kind, std::string(semaphore.key()), semaphore.waiters};
  }
}

}  // namespace lockd
