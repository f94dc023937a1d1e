// Lines: how a place begins, moves up and ends, in one phase or in two.
#include <memory>
#include <utility>

#include "core/lock_table.h"

namespace lockd {

bool LockTable::line_is_full(const Semaphore& semaphore) const {
  return options_.waiters_max != 0 && semaphore.waiters >= options_.waiters_max;
}

Waiter& LockTable::join(Semaphore& semaphore, const Holder& holder, Duration ttl) {
  auto waiter = std::make_unique<Waiter>();
  waiter->semaphore = &semaphore;
  waiter->ttl = ttl;
  waiter->since = now_;
  waiter->holder = StoredHolder(holder);
  slots_.insert(waiter.get());
  if (const SessionId session = holder.session_id(); session != 0) {
    sessions_[session].waiters.push_back(waiter.get());
  }
  semaphore.line.push_back(waiter.get());
  ++semaphore.waiters;
  ++stats_.waiters(semaphore.kind);
  stats_.queued(*waiter);
  return *waiter.release();
}

// Whoever is first comes in, as long as there is room.
void LockTable::promote(Semaphore& semaphore) {
  while (semaphore.has_room() && !semaphore.line.empty()) {
    Waiter& waiter = *semaphore.line.front();
    if (Hold* own = find_named(semaphore, waiter.holder.view())) {
      // One name, two places in a semaphore's line: a name has one permit at most.
      if (own->deadline <= now_) {
        end_hold(*own, EndCause::expired);
      } else {
        own->ttl = waiter.ttl;
        refresh(*own, waiter.ttl);
        give_up(waiter, Outcome::ok, grant_of(*own));
      }
      continue;
    }
    if (fence_ >= kFenceMax) {
      give_up(waiter, Outcome::fences_exhausted);
      continue;
    }
    Enqueued* parked = nullptr;
    if (waiter.two_phase && waiter.listener == nullptr) {
      parked = enqueued_.find(waiter.holder.session_id(), &semaphore);
      waiter.two_phase = false;  // it will be the hold's
    }
    leave_session(waiter);
    Hold& hold = grant(semaphore, std::move(waiter.holder), waiter.ttl);
    if (parked != nullptr) {
      parked->waiter = nullptr;
      parked->hold = &hold;
      hold.two_phase = hold.untold = true;
    }
    stats_.granted_in_line(hold, waiter, now_);
    settle(waiter, Outcome::ok, grant_of(hold));
  }
}

// Leaves the line without a grant of its own.
void LockTable::give_up(Waiter& waiter, Outcome why, const Grant& grant) {
  stats_.gave_up(waiter, why, now_);
  settle(waiter, why, grant);
}

// The wait is over: whoever waits is told, and the place is gone.
void LockTable::settle(Waiter& waiter, Outcome outcome, const Grant& grant) {
  if (waiter.listener != nullptr) {
    effects_.wait_results.push_back(
        {waiter.listener, waiter.id, outcome, grant, now_ - waiter.since});
  }
  leave(waiter);
}

void LockTable::leave(Waiter& waiter) {
  Semaphore& semaphore = *waiter.semaphore;
  leave_session(waiter);
  timers_.disarm(waiter);
  semaphore.line.remove(&waiter);
  --semaphore.waiters;
  --stats_.waiters(semaphore.kind);
  slots_.remove(&waiter);
  delete &waiter;
}

void LockTable::leave_session(Waiter& waiter) {
  if (!waiter.session_peers.linked()) return;
  const SessionId session = waiter.holder.session_id();
  sessions_[session].waiters.remove(&waiter);
  if (waiter.two_phase) drop(*enqueued_.find(session, waiter.semaphore));
}

Enqueued& LockTable::begin_two_phase(SessionId session, Semaphore& semaphore) {
  Enqueued* enqueued = enqueued_.insert(session, &semaphore);
  sessions_[session].enqueued.push_back(enqueued);
  return *enqueued;
}

void LockTable::drop(Enqueued& enqueued) {
  sessions_[enqueued.session].enqueued.remove(&enqueued);
  enqueued_.remove(&enqueued);
}

}  // namespace lockd
