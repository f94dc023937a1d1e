// The operations. What they are made of is in lock_table_parts.cc and lock_table_lines.cc.
#include "core/lock_table.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace lockd {
namespace {

// How much of what has fallen due elsewhere an operation clears away in passing.
constexpr int kStepsPerCall = 16;
constexpr std::size_t kKeysPerStep = 64;

template <typename Request>  // AcquireRequest or EnqueueRequest
Outcome check_request(const Request& request) {
  const Holder& holder = request.holder;
  if (!holder.is_secret() && !is_name(holder.name())) return Outcome::invalid_holder;
  if (holder.session_id() > kSessionIdMax) return Outcome::invalid_holder;
  if (request.ttl <= Duration::zero()) return Outcome::invalid_ttl;
  const std::uint32_t limit_max = request.kind == Kind::lock ? 1 : kLimitMax;
  if (request.limit < 1 || request.limit > limit_max) return Outcome::invalid_limit;
  return Outcome::ok;
}

void fill_in(const Semaphore& semaphore, Conflict* conflict) {
  if (conflict == nullptr || semaphore.holds.empty()) return;
  const Hold& latest = *semaphore.holds.back();
  conflict->holder = latest.holder.display_name();
  conflict->fence = latest.fence;
  conflict->expires_at = latest.deadline;
  conflict->limit = semaphore.limit;
  conflict->holders = semaphore.holders;
  conflict->waiters = semaphore.waiters;
}

}  // namespace

LockTable::LockTable(const TableOptions& options, KeyBudget& budget)
    : options_(options), budget_(budget), index_(options.hash_seed), fence_(options.last_fence) {}

LockTable::Reply LockTable::acquire(Time now, const AcquireRequest& request, Listener* listener,
                                    std::uint64_t id, KeyUnit spare, Conflict* conflict) {
  if (Outcome bad = check_request(request); bad != Outcome::ok) return {bad};
  if (request.wait < Duration::zero()) return {Outcome::invalid_wait};

  Semaphore* semaphore = find_at(now, request.kind, request.key);
  if (semaphore != nullptr && !semaphore->idle()) {
    if (semaphore->limit != request.limit) {
      fill_in(*semaphore, conflict);
      return {stats_.refused(Outcome::limit_mismatch)};
    }
    if (Hold* own = find_named(*semaphore, request.holder)) {
      own->ttl = request.ttl;
      refresh(*own, request.ttl);
      return {Outcome::ok, grant_of(*own)};
    }
    if (!semaphore->has_room()) {
      if (Outcome no = no_place(*semaphore, request.wait, listener); no != Outcome::ok) {
        fill_in(*semaphore, conflict);
        return {no};
      }
      Waiter& waiter = join(*semaphore, request.holder, request.ttl);
      waiter.listener = listener;
      waiter.id = id;
      arm(waiter, request.wait);
      return {Outcome::queued, {}, waiter.slot};
    }
  }
  Hold* hold = nullptr;
  const Outcome taken = take(semaphore, request, std::move(spare), &hold);
  return taken == Outcome::ok ? Reply{taken, grant_of(*hold)} : Reply{taken};
}

// Why a request gets no place in line, or ok.
Outcome LockTable::no_place(const Semaphore& semaphore, Duration wait, const Listener* listener) {
  if (wait == Duration::zero()) return stats_.refused(Outcome::held);
  if (listener == nullptr) return Outcome::held;  // not counted: it will ask again, to wait
  if (line_is_full(semaphore)) return stats_.refused(Outcome::max_waiters);
  return Outcome::ok;
}

LockTable::Reply LockTable::enqueue(Time now, const EnqueueRequest& request, KeyUnit spare) {
  if (Outcome bad = check_request(request); bad != Outcome::ok) return {bad};
  const SessionId session = request.holder.session_id();
  if (session == 0) return {Outcome::invalid_holder};

  Semaphore* semaphore = find_at(now, request.kind, request.key);
  Enqueued* lapsed = nullptr;  // an earlier one, which is in nobody's way
  if (semaphore != nullptr) {
    lapsed = enqueued_.find(session, semaphore);
    if (lapsed != nullptr && !lapsed->lapsed_peers.linked()) return {Outcome::already_enqueued};
    if (!semaphore->idle() && semaphore->limit != request.limit) {
      return {stats_.refused(Outcome::limit_mismatch)};
    }
    if (!semaphore->idle() && !semaphore->has_room()) {
      if (line_is_full(*semaphore)) return {stats_.refused(Outcome::max_waiters)};
      if (lapsed != nullptr) drop(*lapsed);
      Waiter& waiter = join(*semaphore, request.holder, request.ttl);
      waiter.two_phase = true;
      begin_two_phase(session, *semaphore).waiter = &waiter;
      return {Outcome::queued, {}, waiter.slot};
    }
  }
  Hold* hold = nullptr;
  const Outcome taken = take(semaphore, request, std::move(spare), &hold);
  if (taken != Outcome::ok) return {taken};
  hold->two_phase = true;
  if (lapsed != nullptr) drop(*lapsed);
  begin_two_phase(session, *hold->semaphore).hold = hold;
  return {Outcome::ok, grant_of(*hold)};
}

// Takes what nobody holds: a key that is idle, or has room, or is not there yet.
template <typename Request>
Outcome LockTable::take(Semaphore* semaphore, const Request& request, KeyUnit spare, Hold** hold) {
  if (fence_ >= kFenceMax) return Outcome::fences_exhausted;
  StoredHolder holder(request.holder);
  if (semaphore == nullptr) {
    const Outcome made = create(request.kind, request.key, std::move(spare), &semaphore);
    if (made != Outcome::ok) return made;
  }
  semaphore->limit = request.limit;
  *hold = &grant(*semaphore, std::move(holder), request.ttl);
  stats_.granted_at_once(**hold, now_);
  return Outcome::ok;
}

LockTable::Reply LockTable::await_turn(Time now, SessionId session, Kind kind, std::string_view key,
                                       Duration wait, Listener* listener, std::uint64_t id) {
  if (wait < Duration::zero()) return {Outcome::invalid_wait};

  Semaphore* semaphore = find_at(now, kind, key);
  Enqueued* enqueued = semaphore == nullptr ? nullptr : enqueued_.find(session, semaphore);
  if (enqueued == nullptr) return {is_name(key) ? Outcome::not_enqueued : Outcome::invalid_key};
  if (Hold* hold = enqueued->hold) {
    drop(*enqueued);
    hold->two_phase = hold->untold = false;
    refresh(*hold, hold->ttl);
    return {Outcome::ok, grant_of(*hold)};
  }
  Waiter* waiter = enqueued->waiter;
  if (waiter == nullptr) {
    drop(*enqueued);
    return {Outcome::expired};
  }
  if (waiter->listener != nullptr) return {Outcome::not_enqueued};  // somebody awaits it already
  if (wait == Duration::zero()) {
    give_up(*waiter, Outcome::timeout);
    return {Outcome::timeout};
  }
  waiter->listener = listener;
  waiter->id = id;
  arm(*waiter, wait);
  return {Outcome::queued, {}, waiter->slot};
}

LockTable::Reply LockTable::renew(Time now, const HoldId& id, std::optional<Duration> ttl) {
  if (ttl.has_value() && *ttl <= Duration::zero()) return {Outcome::invalid_ttl};

  const Semaphore* semaphore = find_at(now, id.kind, id.key);
  Hold* hold = find_hold(semaphore, id.fence);
  if (hold == nullptr || !hold->holder.equals(id.holder)) return {why_not(semaphore, id)};
  refresh(*hold, ttl.value_or(hold->ttl));
  return {Outcome::ok, grant_of(*hold)};
}

Outcome LockTable::release(Time now, const HoldId& id) {
  Semaphore* semaphore = find_at(now, id.kind, id.key);
  Hold* hold = find_hold(semaphore, id.fence);
  if (hold == nullptr || !hold->holder.equals(id.holder)) return why_not(semaphore, id);
  end_hold(*hold, EndCause::released);
  pass_on(*semaphore);
  return Outcome::ok;
}

bool LockTable::withdraw(Time now, const HoldId& id) {
  Semaphore* semaphore = find_at(now, id.kind, id.key);
  Hold* hold = find_hold(semaphore, id.fence);
  if (hold == nullptr || hold->renewed || !hold->holder.equals(id.holder)) return false;
  end_hold(*hold, EndCause::disconnected);
  pass_on(*semaphore);
  return true;
}

bool LockTable::cancel(Time now, std::uint32_t slot, const Listener* listener, std::uint64_t id) {
  advance(now, kStepsPerCall);
  Waiter* waiter = slots_.find(slot);
  if (waiter == nullptr || listener == nullptr)
    return false;  // a place that nobody awaits has none
  if (waiter->listener != listener || waiter->id != id) return false;
  if (behind_) {
    catch_up(*waiter->semaphore);
    waiter = slots_.find(slot);
    if (waiter == nullptr) return false;
  }
  give_up(*waiter, Outcome::cancelled);
  return true;
}

FenceStatus LockTable::fence(Time now, std::string_view key) {
  const Semaphore* semaphore = find_at(now, Kind::lock, key);
  if (semaphore == nullptr) return {false, fence_};
  return {semaphore->holders > 0, semaphore->first.fence};
}

bool LockTable::explain(Time now, Kind kind, std::string_view key, Conflict* conflict) {
  const Semaphore* semaphore = find_at(now, kind, key);
  if (semaphore == nullptr || semaphore->holds.empty()) return false;
  fill_in(*semaphore, conflict);
  return true;
}

bool LockTable::end_session(Time now, SessionId session, bool keep_holds, int budget) {
  // What it gives up goes to those who still wait: whose wait is over must have left the line.
  if (!advance(now, budget)) return false;
  for (; budget > 0; --budget) {
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return true;
    SessionItems& items = found->second;
    // Places go before holds: a slot that is passed on must not fall to the session that ends.
    if (Enqueued* enqueued = items.enqueued.front()) {
      if (enqueued->hold != nullptr) enqueued->hold->two_phase = false;
      if (Waiter* waiter = enqueued->waiter) {
        give_up(*waiter, Outcome::cancelled);
      } else {
        drop(*enqueued);
      }
    } else if (Waiter* waiter = items.waiters.front()) {
      give_up(*waiter, Outcome::cancelled);
    } else if (Hold* hold = items.holds.front()) {
      Semaphore& semaphore = *hold->semaphore;
      if (keep_holds && !hold->untold) {
        items.holds.remove(hold);
      } else {
        end_hold(*hold, EndCause::disconnected);
        pass_on(semaphore);
      }
    } else {
      sessions_.erase(found);
      return true;
    }
  }
  return !sessions_.contains(session);
}

bool LockTable::knows_session(SessionId session) const {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return false;
  const SessionItems& items = found->second;
  return !items.holds.empty() || !items.waiters.empty();
}

void LockTable::end_waits(Cursor& cursor, Outcome why) {
  index_.walk(cursor, kKeysPerStep, [&](Semaphore& semaphore) {
    while (Waiter* waiter = semaphore.line.front()) give_up(*waiter, why);
  });
}

bool LockTable::advance(Time now, int budget) {
  now_ = std::max(now_, now);
  while (Timer* timer = timers_.pop_due(now_, &budget)) run_out(*timer);
  behind_ = budget <= 0;
  return !behind_;
}

Stats LockTable::stats() const {
  Stats stats = stats_.stats();
  stats.semaphore_holders = hold_index_.size();
  stats.locks_held = stats_.holders() - stats.semaphore_holders;
  stats.keys = index_.size();
  stats.idle_keys = idle_keys_;
  return stats;
}

Semaphore* LockTable::find_at(Time now, Kind kind, std::string_view key) {
  advance(now, kStepsPerCall);
  Semaphore* semaphore = index_.find(kind, key);
  if (behind_ && semaphore != nullptr) catch_up(*semaphore);
  return semaphore;
}

}  // namespace lockd
