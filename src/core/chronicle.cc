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

Occurrence occurrence(Occurrence::Type type, const Semaphore& semaphore, const StoredHolder& holder,
                      Time at) {
  return {.type = type,
          .kind = semaphore.kind,
          .key = semaphore.key(),
          .holder = holder.display_name(),
          .at = at,
          .limit = semaphore.limit,
          .holders = semaphore.holders,
          .waiters = semaphore.waiters};
}

}  // namespace

void Chronicle::record_grant(const Hold& hold, Duration waited, Time now) {
  Occurrence granted = occurrence(Occurrence::Type::granted, *hold.semaphore, hold.holder, now);
  granted.fence = hold.fence;
  granted.ttl = hold.ttl;
  granted.lasted = waited;
  occurrences_.push_back(std::move(granted));
}

void Chronicle::record_end(const Hold& hold, EndCause cause, Duration held, Time now) {
  Occurrence ended = occurrence(type_of(cause), *hold.semaphore, hold.holder, now);
  ended.fence = hold.fence;
  ended.ttl = hold.ttl;
  ended.lasted = held;
  --ended.holders;
  occurrences_.push_back(std::move(ended));
}

void Chronicle::record_queued(const Waiter& waiter) {
  Occurrence queued =
      occurrence(Occurrence::Type::queued, *waiter.semaphore, waiter.holder, waiter.since);
  queued.ttl = waiter.ttl;
  occurrences_.push_back(std::move(queued));
}

void Chronicle::gave_up(const Waiter& waiter, Outcome why, Time now) {
  if (why == Outcome::timeout) ++figures_.timeouts;
  if (why != Outcome::timeout && why != Outcome::ok) ++figures_.cancels;
  if (!looking_) return;
  Occurrence left = occurrence(Occurrence::Type::gave_up, *waiter.semaphore, waiter.holder, now);
  left.outcome = why;
  left.ttl = waiter.ttl;
  left.lasted = now - waiter.since;
  --left.waiters;
  occurrences_.push_back(std::move(left));
}

Outcome Chronicle::refused(Outcome why) {
  Figures::Refusals& refusals = figures_.refusals;
  if (why == Outcome::held) ++refusals.held;
  if (why == Outcome::max_waiters) ++refusals.max_waiters;
  if (why == Outcome::limit_mismatch) ++refusals.limit_mismatch;
  return why;
}

}  // namespace lockd
