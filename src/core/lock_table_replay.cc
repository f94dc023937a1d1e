// Recovery, compaction and replication: a table from its events, and events from a table.
#include <algorithm>
#include <utility>

#include "core/lock_table.h"

namespace lockd {

bool LockTable::apply(const Event& event) {
  if (event.fence > kFenceMax) return false;
  raise_fence(event.fence);
  if (event.type == Event::Type::fence_floor) return true;

  Semaphore* semaphore = index_.find(event.kind, event.key);
  Hold* hold = find_hold(semaphore, event.fence);
  switch (event.type) {
    case Event::Type::granted: {
      if (hold == nullptr) {
        if (event.limit < 1) return false;
        if (semaphore == nullptr) {
          const Outcome made = create(event.kind, event.key, budget_.take_beyond(), &semaphore);
          if (made != Outcome::ok) return false;
        }
        if (semaphore->idle()) semaphore->limit = event.limit;
        if (semaphore->limit != event.limit || !semaphore->has_room()) return false;
        // Its session ended with the process that served it.
        const Holder owner =
            event.holder.is_secret() ? Holder::of_secret(event.holder.secret()) : event.holder;
        hold = &add_hold(*semaphore, StoredHolder(owner), event.fence, event.ttl);
        stats_.replayed_grant();
        hold->since = event.expires_at - event.ttl;  // or of its last renewal: all that is known
        hold->renewed = true;                        // for all that is known
      }
      replayed_ = hold;
      [[fallthrough]];
    }
    case Event::Type::renewed:
      if (hold == nullptr) return true;
      hold->ttl = event.ttl;
      timers_.arm(*hold, event.expires_at);
      return true;
    case Event::Type::ended:
      if (hold == nullptr) return true;
      remove_hold(*hold);
      stats_.replayed_end();
      if (semaphore->idle()) {
        forget(*semaphore);
        budget_.give_back();
      }
      return true;
    case Event::Type::fence_floor: break;
  }
  return true;
}

void LockTable::restart_leases(Time now) {
  now_ = std::max(now_, now);
  Cursor all;
  index_.walk(all, SIZE_MAX, [&](Semaphore& semaphore) {
    const Holds& holds = semaphore.holds;
    for (Hold* hold = holds.front(); hold != nullptr; hold = holds.next(hold)) {
      timers_.arm(*hold, now_ + (hold->deadline - Time{}));
      hold->since = now_;
    }
  });
}

void LockTable::raise_fence(Fence floor) { fence_ = std::max(fence_, floor); }

void LockTable::describe(Cursor& cursor, std::size_t keys_max, std::vector<Event>& events) const {
  index_.walk(cursor, keys_max, [&](const Semaphore& semaphore) {
    const Holds& holds = semaphore.holds;
    for (const Hold* hold = holds.front(); hold != nullptr; hold = holds.next(hold)) {
      events.push_back(granted(*hold));
    }
  });
}

}  // namespace lockd
