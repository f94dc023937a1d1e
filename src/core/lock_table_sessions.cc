// What a session has, and what becomes of it when the session ends.
#include "core/lock_table.h"

namespace lockd {
namespace {

constexpr std::size_t kKeysPerStep = 64;

}  // namespace

bool LockTable::end_places(Time now, SessionId session, int* budget) noexcept {
  // What it gives up goes to those who still wait: whose wait is over must have left the queue.
  if (!advance(now, *budget)) {
    *budget = 0;
    return false;
  }
  ending_ = session;  // nothing that is passed on falls to it
  for (; *budget > 0; --*budget) {
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) break;
    if (QueuePlace* place = found->second.waiters.back()) {
      leave_queue(*place, Outcome::cancelled);
    } else if (Enqueued* enqueued = found->second.enqueued.front()) {
      if (enqueued->hold != nullptr) enqueued->hold->two_phase = false;
      drop(*enqueued);
    } else {
      break;
    }
  }
  ending_ = 0;
  return *budget > 0;
}

// Places go before holds: those are passed on, too.
bool LockTable::end_session(Time now, SessionId session, bool keep_holds, int* budget) noexcept {
  if (!end_places(now, session, budget)) return false;
  for (; *budget > 0; --*budget) {
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return true;
    Hold* const hold = found->second.holds.front();
    if (hold == nullptr) {
      sessions_.erase(found);
      return true;
    }
    Key& key = *hold->key;
    if (keep_holds && !hold->unacknowledged) {
      units_.detach_client(hold->holder.view());
      leave_session(*hold);
    } else {
      end_hold(*hold, EndCause::disconnected);
      grant_next(key);
    }
  }
  return !sessions_.contains(session);
}

bool LockTable::forget_session(SessionId session) noexcept {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return true;
  const SessionItems& items = found->second;
  if (!items.holds.empty() || !items.waiters.empty() || !items.enqueued.empty()) return false;
  sessions_.erase(found);
  return true;
}

Owned LockTable::owned(SessionId session) const {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return {};
  return {.holds = found->second.held, .places = found->second.places};
}

bool LockTable::has_session(SessionId session) const {
  const Owned there = owned(session);
  return there.holds > 0 || there.places > 0;
}

bool LockTable::has_acknowledged_hold(SessionId session) const {
  const auto found = sessions_.find(session);
  return found != sessions_.end() && found->second.acknowledged > 0;
}

void LockTable::end_waits(Cursor& cursor, Outcome why) noexcept {
  index_.walk(cursor, kKeysPerStep, [&](Key& key) {
    if (key.queue.empty()) return;
    while (QueuePlace* place = key.queue.front()) give_up(*place, why);
    grant_next(key);
  });
}

}  // namespace lockd
