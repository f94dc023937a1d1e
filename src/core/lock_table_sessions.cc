// The end of a session, in bounded steps.
#include "core/lock_table.h"

namespace lockd {
namespace {

constexpr std::size_t kKeysPerStep = 64;

}  // namespace

bool LockTable::end_places(Time now, SessionId session, int* budget) noexcept {
  // A hold that ends here is granted to waiters, so waits that are over must have left the queues.
  if (!advance(now, *budget)) {
    *budget = 0;
    return false;
  }
  state_.set_ending(session);
  for (; *budget > 0; --*budget) {
    const SessionIndex::Items* const items = state_.sessions().find(session);
    if (items == nullptr) break;
    if (QueuePlace* place = items->places.back()) {
      state_.leave_queue(*place, Outcome::cancelled);
    } else if (Enqueued* enqueued = items->enqueued.front()) {
      if (enqueued->hold != nullptr) enqueued->hold->two_phase = false;
      state_.sessions().remove(*enqueued);
    } else {
      break;
    }
  }
  state_.set_ending(0);
  return *budget > 0;
}

// Places end before holds, which are granted to waiters when they end.
bool LockTable::end_session(Time now, SessionId session, bool keep_holds, int* budget) noexcept {
  if (!end_places(now, session, budget)) return false;
  for (; *budget > 0; --*budget) {
    const SessionIndex::Items* const items = state_.sessions().find(session);
    if (items == nullptr) return true;
    Hold* const hold = items->holds.front();
    if (hold == nullptr) return state_.sessions().forget(session);
    Key& key = *hold->key;
    if (keep_holds && !hold->unacknowledged) {
      state_.leave_to_lease(*hold);
    } else {
      state_.end_hold(*hold, EndCause::disconnected);
      state_.grant_next(key);
    }
  }
  return state_.sessions().find(session) == nullptr;
}

void LockTable::end_waits(Cursor& cursor, Outcome why) noexcept {
  state_.keys().walk(cursor, kKeysPerStep, [&](Key& key) {
    if (key.queue.empty()) return;
    while (QueuePlace* place = key.queue.front()) state_.give_up(*place, why);
    state_.grant_next(key);
  });
}

}  // namespace lockd
