#include "core/chronicle.h"

namespace lockd {
namespace {

Occurrence::Type type_of(EndCause cause) {
  switch (cause) {
    case EndCause::released: return Occurrence::Type::released;
    case EndCause::expired: return Occurrence::Type::expired;
    case EndCause::disconnected: break;
  }
  return Occurrence::Type::disconnected;
}

Occurrence about(Occurrence::Type type, const Semaphore& semaphore, Time at) {
  return {.type = type,
          .kind = semaphore.kind,
          .key = semaphore.key(),
          .at = at,
          .limit = semaphore.limit,
          .holders = semaphore.holders,
          .waiters = semaphore.waiters};
}

Occurrence about(Occurrence::Type type, const Hold& hold, Time at) {
  Occurrence occurrence = about(type, *hold.semaphore, at);
  occurrence.holder = hold.holder.display_name();
  occurrence.fence = hold.fence;
  occurrence.ttl = hold.ttl;
  return occurrence;
}

std::uint32_t place_of(const Waiter& waiter) { return waiter.slot + 1; }

Occurrence about(Occurrence::Type type, const Waiter& waiter, Time at) {
  Occurrence occurrence = about(type, *waiter.semaphore, at);
  occurrence.holder = waiter.holder.display_name();
  occurrence.ttl = waiter.ttl;
  occurrence.place = place_of(waiter);
  return occurrence;
}

}  // namespace

void Chronicle::record_grant(const Hold& hold, const Waiter* waiter, Time now) {
  Occurrence& granted = occurrences_.emplace_back(about(Occurrence::Type::granted, hold, now));
  if (waiter == nullptr) return;
  granted.lasted = now - waiter->since;
  granted.place = place_of(*waiter);
  --granted.waiters;
}

void Chronicle::record_end(const Hold& hold, EndCause cause, Time now) {
  Occurrence& ended = occurrences_.emplace_back(about(type_of(cause), hold, now));
  ended.lasted = hold.held_at(now);
  --ended.holders;
}

void Chronicle::record_queued(const Waiter& waiter) {
  occurrences_.push_back(about(Occurrence::Type::queued, waiter, waiter.since));
}

void Chronicle::gave_up(const Waiter& waiter, Outcome why, Time now) {
  if (why == Outcome::timeout) ++figures_.timeouts;
  if (why != Outcome::timeout && why != Outcome::ok) ++figures_.cancels;
  if (!observed_) return;
  Occurrence& left = occurrences_.emplace_back(about(Occurrence::Type::gave_up, waiter, now));
  left.outcome = why;
  left.lasted = now - waiter.since;
  --left.waiters;
}

Outcome Chronicle::refused(Outcome why) {
  Figures::Refusals& refusals = figures_.refusals;
  if (why == Outcome::held) ++refusals.held;
  if (why == Outcome::max_waiters) ++refusals.max_waiters;
  if (why == Outcome::limit_mismatch) ++refusals.limit_mismatch;
  return why;
}

}  // namespace lockd
