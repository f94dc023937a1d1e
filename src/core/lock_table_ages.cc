// How long waits and holds have lasted.
#include <algorithm>
#include <string>

#include "core/lock_table.h"

namespace lockd {
namespace {

void scan_holds(TableState& state, Key& key, Time now, OldestEntries& found) {
  const Duration slow_age = state.options().slow_hold;
  const Holds& holds = key.holds;
  const Hold* oldest = holds.front();
  for (Hold* hold = holds.front(); hold != nullptr; hold = holds.next(hold)) {
    if (hold->since < oldest->since) oldest = hold;
    const bool is_slow = slow_age > Duration::zero() && hold->held_at(now) >= slow_age;
    if (is_slow && !hold->slow) {
      hold->slow = true;
      state.stats().slow(*hold, now);
    }
  }
  if (oldest->since < found.hold.since) {
    found.hold = {key.kind, std::string(key.name()), oldest->since};
  }
}

void scan_wait(TableState& state, QueuePlace& place, Time now, OldestEntries& found) {
  const Duration slow_age = state.options().slow_wait;
  const Key& key = *place.key;
  const bool is_slow = slow_age > Duration::zero() && now - place.since >= slow_age;
  if (is_slow && !place.slow) {
    place.slow = true;
    state.stats().slow(place, now);
  }
  if (place.since < found.wait.since) {
    found.wait = {key.kind, std::string(key.name()), place.since};
  }
  if (key.waiters() > found.queue.waiters) {
    found.queue = {key.kind, std::string(key.name()), key.waiters()};
  }
}

}  // namespace

void LockTable::scan_ages(Time now, AgeCursor& cursor, std::size_t steps,
                          OldestEntries& found) noexcept {
  now = std::max(now, this->now());
  if (!cursor.keys.done) {
    return state_.keys().walk(cursor.keys, steps, [&](Key& key) {
      if (!key.holds.empty()) scan_holds(state_, key, now, found);
    });
  }
  const PlaceIndex& places = state_.places();
  for (; steps > 0 && cursor.slot < places.slots(); --steps, ++cursor.slot) {
    if (QueuePlace* place = places.find(cursor.slot)) scan_wait(state_, *place, now, found);
  }
  cursor.done = cursor.slot >= places.slots();
}

}  // namespace lockd
