#include "core/table_stats.h"

namespace lockd {
namespace {

using Type = KeyEvent::Type;

Type type_of(EndCause cause) {
  switch (cause) {
    case EndCause::released: return Type::released;
    case EndCause::expired: return Type::expired;
    case EndCause::disconnected: break;
  }
  return Type::disconnected;
}

Occurrence about(Type type, const Semaphore& semaphore, Time at) {
  return {.at = at,
          .limit = semaphore.limit,
          .holders = semaphore.holders,
          .waiters = semaphore.waiters,
          .type = type,
          .kind = semaphore.kind};
}

Occurrence about(Type type, const Hold& hold, Time at) {
  Occurrence facts = about(type, *hold.semaphore, at);
  facts.fence = hold.fence;
  facts.ttl = hold.ttl;
  return facts;
}

std::uint32_t place_of(const Waiter& waiter) { return waiter.slot + 1; }

Occurrence about(Type type, const Waiter& waiter, Time at) {
  Occurrence facts = about(type, *waiter.semaphore, at);
  facts.ttl = waiter.ttl;
  facts.place = place_of(waiter);
  return facts;
}

Occurrence end_of(const Hold& hold, EndCause cause, Time now) {
  Occurrence ended = about(type_of(cause), hold, now);
  ended.lasted = hold.held_at(now);
  --ended.holders;
  return ended;
}

Whom whom_of(const Hold& hold) { return {hold.holder.view()}; }
Whom whom_of(const Waiter& waiter) { return {waiter.holder.view()}; }

}  // namespace

void TableStats::record(const Occurrence& facts, std::string_view key, const Whom& whom,
                        const Order& order) {
  if (history_.is_kept()) history_.add(facts, key, whom, order);
  const bool is_told =
      observed_ || (tells_rare_ && History::sort_of(facts.type) == History::Sort::rare);
  if (is_told) events_.push_back(PastEvent(facts, key, whom, order).event());
}

void TableStats::record_grant(const Hold& hold, const Waiter* waiter, Time now) {
  Occurrence granted = about(Type::granted, hold, now);
  if (waiter != nullptr) {
    granted.lasted = now - waiter->since;
    granted.place = place_of(*waiter);
    --granted.waiters;
  }
  record(granted, hold.semaphore->key(), whom_of(hold));
}

void TableStats::record_end(const Hold& hold, EndCause cause, Time now) {
  record(end_of(hold, cause, now), hold.semaphore->key(), whom_of(hold));
}

void TableStats::record_queued(const Waiter& waiter) {
  record(about(Type::queued, waiter, waiter.since), waiter.semaphore->key(), whom_of(waiter));
}

void TableStats::gave_up(const Waiter& waiter, Outcome why, Time now) {
  if (why == Outcome::timeout) ++stats_.timeouts;
  if (why != Outcome::timeout && why != Outcome::ok) ++stats_.cancels;
  if (!recorded_) return;
  Occurrence left = about(Type::gave_up, waiter, now);
  left.outcome = why;
  left.lasted = now - waiter.since;
  --left.waiters;
  record(left, waiter.semaphore->key(), whom_of(waiter));
}

Outcome TableStats::refused(Outcome why) {
  Stats::Refusals& refusals = stats_.refusals;
  if (why == Outcome::held) ++refusals.held;
  if (why == Outcome::max_waiters) ++refusals.max_waiters;
  if (why == Outcome::max_holds || why == Outcome::max_client_holds) ++refusals.max_holds;
  if (why == Outcome::limit_mismatch) ++refusals.limit_mismatch;
  return why;
}

void TableStats::record_refusal(const Refused& refused, const Semaphore* semaphore, Outcome why,
                                Time now) {
  if (!recorded_) return;
  if (refusals_ != nullptr && !refusals_->admit(now)) {
    ++stats_.history_dropped;
    return;
  }
  Occurrence facts{.at = now,
                   .ttl = refused.ttl,
                   .limit = refused.limit,
                   .type = Type::refused,
                   .kind = refused.kind,
                   .outcome = why};
  if (semaphore != nullptr) {
    facts.holders = semaphore->holders;
    facts.waiters = semaphore->waiters;
  }
  record(facts, refused.key, refused.whom);
}

void TableStats::slow(const Hold& hold, Time now) {
  Occurrence facts = about(Type::slow_hold, hold, now);
  facts.lasted = hold.held_at(now);
  record(facts, hold.semaphore->key(), whom_of(hold));
}

void TableStats::slow(const Waiter& waiter, Time now) {
  Occurrence facts = about(Type::slow_wait, waiter, now);
  facts.lasted = now - waiter.since;
  record(facts, waiter.semaphore->key(), whom_of(waiter));
}

void TableStats::replayed_grant(const Hold& hold, std::optional<Time> at) {
  ++replayed_;
  if (!at || !history_.is_kept()) return;
  history_.add(about(Type::granted, hold, *at), hold.semaphore->key(), whom_of(hold));
}

void TableStats::replayed_end(const Hold& hold, EndCause cause, std::optional<Time> at) {
  --replayed_;
  if (!at || !history_.is_kept()) return;
  history_.add(end_of(hold, cause, *at), hold.semaphore->key(), whom_of(hold));
}

}  // namespace lockd
