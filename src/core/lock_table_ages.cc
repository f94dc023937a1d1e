// How long waits and holds have lasted.
#include "core/lock_table.h"

#include <algorithm>
#include <string>

namespace lockd {

void LockTable::scan_ages(Time now, AgeCursor& cursor, std::size_t steps,
                          OldestEntries& found) noexcept {
  now = std::max(now, now_);
  if (!cursor.keys.done) {
    return index_.walk(cursor.keys, steps, [&](Key& key) {
      if (!key.holds.empty()) scan_holds(key, now, found);
    });
  }
  for (; steps > 0 && cursor.slot < slots_.slots(); --steps, ++cursor.slot) {
    if (QueuePlace* place = slots_.find(cursor.slot)) scan_wait(*place, now, found);
  }
  cursor.done = cursor.slot >= slots_.slots();
}

void LockTable::scan_holds(Key& key, Time now, OldestEntries& found) {
  const Holds& holds = key.holds;
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
    found.hold = {key.kind, std::string(key.name()), oldest->since};
  }
}

void LockTable::scan_wait(QueuePlace& place, Time now, OldestEntries& found) {
  const Key& key = *place.key;
  const bool is_slow =
      options_.slow_wait > Duration::zero() && now - place.since >= options_.slow_wait;
  if (is_slow && !place.slow) {
    place.slow = true;
    stats_.slow(place, now);
  }
  if (place.since < found.wait.since) {
    found.wait = {key.kind, std::string(key.name()), place.since};
  }
  if (key.waiters > found.queue.waiters) {
    found.queue = {key.kind, std::string(key.name()), key.waiters};
  }
}

}  // namespace lockd
