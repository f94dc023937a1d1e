#include "core/table_stats.h"

namespace lockd {
namespace {

KeyEvent::Type type_of(EndCause cause) {
  switch (cause) {
    case EndCause::released: return KeyEvent::Type::released;
    case EndCause::expired: return KeyEvent::Type::expired;
    case EndCause::revoked: return KeyEvent::Type::revoked;
    case EndCause::disconnected: break;
  }
  return KeyEvent::Type::disconnected;
}

KeyEvent about_key(KeyEvent::Type type, const Semaphore& semaphore, Time at) {
  return {.type = type,
          .kind = semaphore.kind,
          .key = semaphore.key(),
          .at = at,
          .limit = semaphore.limit,
          .holders = semaphore.holders,
          .waiters = semaphore.waiters};
}

std::uint32_t place_of(const Waiter& waiter) { return waiter.slot + 1; }

KeyEvent about_place(KeyEvent::Type type, const Waiter& waiter, Time at) {
  KeyEvent event = about_key(type, *waiter.semaphore, at);
  event.holder = waiter.holder.display_name();
  event.client = waiter.client;
  event.session = waiter.holder.session_id();
  event.ttl = waiter.ttl;
  event.place = place_of(waiter);
  return event;
}

}  // namespace

KeyEvent TableStats::about_hold(KeyEvent::Type type, const Hold& hold, Time at) const {
  KeyEvent event = about_key(type, *hold.semaphore, at);
  event.holder = hold.holder.display_name();
  event.client = clients_.of(hold);
  if (hold.session_peers.linked()) event.session = hold.holder.session_id();
  event.fence = hold.fence;
  event.ttl = hold.ttl;
  return event;
}

void TableStats::record_grant(const Hold& hold, const Waiter* waiter, Time now) {
  KeyEvent& granted = events_.emplace_back(about_hold(KeyEvent::Type::granted, hold, now));
  if (waiter == nullptr) return;
  granted.lasted = now - waiter->since;
  granted.place = place_of(*waiter);
  --granted.waiters;
}

void TableStats::record_end(const Hold& hold, EndCause cause, Time now, const AdminNote& note) {
  KeyEvent& ended = events_.emplace_back(about_hold(type_of(cause), hold, now));
  ended.lasted = hold.held_at(now);
  ended.reason = note.reason;
  ended.by = note.by;
  const bool is_taken = cause == EndCause::expired || cause == EndCause::revoked;
  if (is_taken && !hold.untold) {
    ended.secret = hold.holder.view().secret();
  }
  --ended.holders;
}

void TableStats::resized(const Semaphore& semaphore, const AdminNote& note, Time now) {
  if (!sees_everything()) return;
  KeyEvent& resized = events_.emplace_back(about_key(KeyEvent::Type::resized, semaphore, now));
  resized.reason = note.reason;
  resized.by = note.by;
}

void TableStats::record_queued(const Waiter& waiter) {
  events_.push_back(about_place(KeyEvent::Type::queued, waiter, waiter.since));
}

void TableStats::gave_up(const Waiter& waiter, Outcome why, Time now) {
  if (why == Outcome::timeout) ++stats_.timeouts;
  if (why != Outcome::timeout && why != Outcome::ok) ++stats_.cancels;
  if (!sees_everything()) return;
  KeyEvent& left = events_.emplace_back(about_place(KeyEvent::Type::gave_up, waiter, now));
  left.outcome = why;
  left.lasted = now - waiter.since;
  --left.waiters;
}

Outcome TableStats::refused(Outcome why) {
  Stats::Refusals& refusals = stats_.refusals;
  if (why == Outcome::held) ++refusals.held;
  if (why == Outcome::max_waiters) ++refusals.max_waiters;
  if (why == Outcome::max_holds || why == Outcome::max_client_holds) ++refusals.max_holds;
  if (why == Outcome::limit_mismatch) ++refusals.limit_mismatch;
  return why;
}

}  // namespace lockd
