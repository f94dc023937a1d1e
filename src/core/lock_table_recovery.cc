// Recovery, compaction and replication: a table from its events, and events from a table.
#include <algorithm>

#include "base/text.h"
#include "core/lock_table.h"

namespace lockd {
namespace {

bool is_sound(const ClientView& client) {
  return is_plain_text(client.name, kHolderSizeMax) && is_plain_text(client.peer, kPeerSizeMax) &&
         is_plain_text(client.note, kNoteSizeMax);
}

// A semaphore that was resized up and then down may have a hold with more permits than any limit
// that the journal still names.
bool is_sound(const Event& granted) {
  if (granted.kind == Kind::lock) return granted.permits == 1;
  return granted.mode == Mode::exclusive && granted.permits >= 1 && granted.permits <= kLimitMax;
}

// Sets the key's limits to those of a recovered grant. False if the grant contradicts the key. A
// semaphore that was resized down may have more permits in use than its limit.
bool adopt_limits(Key& key, const Event& granted) {
  if (key.kind == Kind::lock && granted.first_limit != 0) return false;
  if (key.idle()) {
    const bool is_resized = granted.first_limit != 0;
    key.set_limit(is_resized ? granted.first_limit : granted.limit);
    if (is_resized) key.resize(granted.limit);
  }
  if (key.limit() != granted.limit || key.first_limit() != granted.first_limit) return false;
  return key.is_resized() || key.fits(takes_of(granted));
}

// Null if the event contradicts the table. `key` may be null.
Hold* apply_grant(TableState& state, const Event& event, Key* key, std::optional<Time> at) {
  if (event.limit < 1 || !is_sound(event.client) || !is_sound(event)) return nullptr;
  if (key == nullptr) {
    if (!is_name(event.key)) return nullptr;
    key = &state.create(event.kind, event.key, state.limits().keys().take_beyond_limit());
  }
  if (!adopt_limits(*key, event)) return nullptr;
  // The holder's session ended with the process that served it. Its client may still repeat the
  // request.
  const Holder owner =
      event.holder.is_secret() ? Holder::of_secret(event.holder.secret()).chosen() : event.holder;
  state.limits().holds().take_beyond_limit(owner);
  Hold* const hold =
      &state.add_hold(*key, StoredHolder(owner), takes_of(event), event.fence, event.ttl);
  state.clients().keep(*hold, state.clients().share(event.client));
  state.stats().replayed_grant(*hold, at);
  // A snapshot does not say whether the lease was renewed; if it was, `since` is the last renewal.
  hold->since = at.value_or(event.expires_at - event.ttl);
  hold->renewed = true;
  return hold;
}

}  // namespace

bool LockTable::apply(const Event& event, std::optional<Time> at) noexcept {
  if (event.fence > kFenceMax) return false;
  state_.fences().raise(event.fence);
  if (event.type == Event::Type::fence_floor) return true;

  Key* key = state_.keys().find(event.kind, event.key);
  Hold* hold = state_.find_hold(key, event.fence);
  switch (event.type) {
    case Event::Type::granted:
      if (hold == nullptr) hold = apply_grant(state_, event, key, at);
      if (hold == nullptr) return false;
      state_.set_replayed(hold);
      [[fallthrough]];
    case Event::Type::renewed:
      if (hold == nullptr) return true;
      hold->ttl = event.ttl;
      state_.timers().arm(*hold, event.expires_at);
      return true;
    case Event::Type::resized:
      if (event.kind == Kind::lock || event.limit < 1) return false;
      if (key != nullptr) key->resize(event.limit);
      return true;
    case Event::Type::ended:
      if (hold == nullptr) return true;
      state_.stats().replayed_end(*hold, event.cause, at);
      state_.remove_hold(*hold);
      if (key->idle()) {
        state_.forget(*key);
        state_.limits().keys().give_back();
      }
      return true;
    case Event::Type::fence_floor: break;
  }
  return true;
}

void LockTable::prolong_leases(Time now, Duration least) noexcept {
  state_.set_now(now);
  Cursor all;
  state_.keys().walk(all, SIZE_MAX, [&](Key& key) {
    const Holds& holds = key.holds;
    for (Hold* hold = holds.front(); hold != nullptr; hold = holds.next(hold)) {
      const Time soonest = this->now() + std::min(hold->ttl, least);
      if (hold->deadline < soonest) state_.timers().arm(*hold, soonest);
    }
  });
}

void LockTable::describe(Cursor& cursor, std::size_t keys_max, std::vector<Event>& events) const {
  state_.keys().walk(cursor, keys_max, [&](const Key& key) {
    const Holds& holds = key.holds;
    for (const Hold* hold = holds.front(); hold != nullptr; hold = holds.next(hold)) {
      events.push_back(state_.granted(*hold));
    }
  });
}

}  // namespace lockd
