#include "core/table_stats.h"

namespace lockd {
namespace {

using Type = KeyEvent::Type;

Type type_of(EndCause cause) {
  switch (cause) {
    case EndCause::released: return Type::released;
    case EndCause::expired: return Type::expired;
    case EndCause::revoked: return Type::revoked;
    case EndCause::disconnected: break;
  }
  return Type::disconnected;
}

std::uint32_t place_of(const QueuePlace& place) { return place.slot + 1; }

// The fields of a key event that come from its key and its hold or place.

void fill(KeyEventRecord& facts, const Key& key, Time at) {
  facts.at = at;
  facts.limit = key.limit();
  facts.holders = key.holders;
  facts.waiters = key.waiters();
  facts.kind = key.kind;
}

void fill(KeyEventRecord& facts, const Hold& hold, Time at) {
  fill(facts, *hold.key, at);
  facts.fence = hold.fence;
  facts.takes = hold.takes;
  facts.ttl = hold.ttl;
}

void fill(KeyEventRecord& facts, const QueuePlace& place, Time at) {
  fill(facts, *place.key, at);
  facts.takes = place.takes;
  facts.ttl = place.ttl;
  facts.place = place_of(place);
}

void fill_in_end(KeyEventRecord& facts, const Hold& hold, Time now) {
  fill(facts, hold, now);
  facts.lasted = hold.held_at(now);
  --facts.holders;
}

ClientView view_of(const QueuePlace& place) {
  return place.client == nullptr ? ClientView{} : ClientView(*place.client);
}

}  // namespace

// Recording. The fast path writes the record in place: no observer wants the event, and it has no
// text but its key and holder.

template <typename Fill>
void TableStats::record(Type type, const Hold& hold, Fill fill, const AdminNote& note) {
  const std::string_view key = hold.key->name();
  const bool is_plain = hold.client_from == ClientFrom::nowhere && type != Type::revoked;
  if (is_plain && history_.is_kept() && !is_observed(type)) {
    return fill(history_.begin(type, key, hold.holder));
  }
  KeyEventRecord facts{.type = type};
  fill(facts);
  record(facts, {key, hold.holder.view(), clients_.view_of(hold), note.reason, note.by});
  if (!is_observed(type)) return;
  events_.back().client = clients_.of(hold);
  if (!hold.session_peers.linked()) events_.back().session = 0;  // that session has ended
}

template <typename Fill>
void TableStats::record(Type type, const QueuePlace& place, Fill fill) {
  const std::string_view key = place.key->name();
  if (place.client_from == ClientFrom::nowhere && history_.is_kept() && !is_observed(type)) {
    return fill(history_.begin(type, key, place.holder));
  }
  KeyEventRecord facts{.type = type};
  fill(facts);
  record(facts, {key, place.holder.view(), view_of(place)});
  if (is_observed(type)) events_.back().client = place.client;
}

void TableStats::record(const KeyEventRecord& facts, const Texts& texts) {
  if (history_.is_kept()) history_.add(facts, texts);
  if (is_observed(facts.type)) events_.push_back(PastEvent(facts, texts).event());
}

void TableStats::record_grant(const Hold& hold, const QueuePlace* place, Time now) {
  record(Type::granted, hold, [&](KeyEventRecord& granted) {
    fill(granted, hold, now);
    if (place == nullptr) return;
    granted.lasted = now - place->since;
    granted.place = place_of(*place);
    --granted.waiters;
  });
}

void TableStats::record_end(const Hold& hold, EndCause cause, Time now, const AdminNote& note) {
  record(
      type_of(cause), hold, [&](KeyEventRecord& ended) { fill_in_end(ended, hold, now); }, note);
  const bool is_lost = cause == EndCause::expired || cause == EndCause::revoked;
  if (is_lost && !hold.unacknowledged && is_observed(type_of(cause))) {
    events_.back().secret = hold.holder.view().secret();
  }
}

void TableStats::resized(const Key& key, const AdminNote& note, Time now) {
  KeyEventRecord facts{.type = Type::resized};
  fill(facts, key, now);
  record(facts, {.key = key.name(), .holder = "", .reason = note.reason, .by = note.by});
}

void TableStats::record_queued(const QueuePlace& place) {
  record(Type::queued, place, [&](KeyEventRecord& queued) { fill(queued, place, place.since); });
}

void TableStats::gave_up(const QueuePlace& place, Outcome why, Time now) {
  if (why == Outcome::timeout) ++stats_.timeouts;
  if (why != Outcome::timeout && why != Outcome::ok) ++stats_.cancels;
  if (!recorded_) return;
  record(Type::gave_up, place, [&](KeyEventRecord& left) {
    fill(left, place, now);
    left.outcome = why;
    left.lasted = now - place.since;
    --left.waiters;
  });
}

Outcome TableStats::refused(Outcome why) {
  Stats::Refusals& refusals = stats_.refusals;
  if (why == Outcome::held) ++refusals.held;
  if (why == Outcome::max_waiters) ++refusals.max_waiters;
  if (why == Outcome::max_holds || why == Outcome::max_client_holds) ++refusals.max_holds;
  if (why == Outcome::limit_mismatch) ++refusals.limit_mismatch;
  return why;
}

void TableStats::record_refusal(const Refused& refused, const Key* key, Outcome why, Time now) {
  if (!recorded_) return;
  if (refusals_ != nullptr && !refusals_->admit(now.ns)) {
    ++stats_.history_dropped;
    return;
  }
  KeyEventRecord facts{.at = now,
                       .ttl = refused.ttl,
                       .limit = refused.limit,
                       .takes = refused.takes,
                       .type = Type::refused,
                       .kind = refused.kind,
                       .outcome = why};
  if (key != nullptr) fill(facts, *key, now);
  record(facts, {refused.key, refused.holder, refused.client});
}

void TableStats::slow(const Hold& hold, Time now) {
  record(Type::slow_hold, hold, [&](KeyEventRecord& facts) {
    fill(facts, hold, now);
    facts.lasted = hold.held_at(now);
  });
}

void TableStats::slow(const QueuePlace& place, Time now) {
  record(Type::slow_wait, place, [&](KeyEventRecord& facts) {
    fill(facts, place, now);
    facts.lasted = now - place.since;
  });
}

void TableStats::replayed_grant(const Hold& hold, std::optional<Time> at) {
  ++replayed_;
  if (!at || !history_.is_kept()) return;
  KeyEventRecord granted{.type = Type::granted};
  fill(granted, hold, *at);
  record_replayed(granted, hold);
}

void TableStats::replayed_end(const Hold& hold, EndCause cause, std::optional<Time> at) {
  --replayed_;
  if (!at || !history_.is_kept()) return;
  KeyEventRecord ended{.type = type_of(cause)};
  fill_in_end(ended, hold, *at);
  record_replayed(ended, hold);
}

// Observers get no key event: its views could be dead when they read it.
void TableStats::record_replayed(const KeyEventRecord& facts, const Hold& hold) {
  history_.add(facts, {hold.key->name(), hold.holder.view(), clients_.view_of(hold)});
}

}  // namespace lockd
