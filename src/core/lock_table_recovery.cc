// Recovery, compaction and replication: a table from its events, and events from a table.
#include "core/lock_table.h"

#include <algorithm>

#include "base/text.h"

namespace lockd {
namespace {

// As a journal tells of it.
bool is_sound(const ClientView& client) {
  return is_plain_text(client.name, kHolderSizeMax) && is_plain_text(client.peer, kPeerSizeMax) &&
         is_plain_text(client.note, kNoteSizeMax);
}

// Of a semaphore that was made larger, and then smaller, a hold may have more permits than any
// limit that is still known.
bool is_sound(const Event& granted) {
  if (granted.kind == Kind::lock) return granted.permits == 1;
  return granted.mode == Mode::exclusive && granted.permits >= 1 && granted.permits <= kLimitMax;
}

}  // namespace

bool LockTable::apply(const Event& event, std::optional<Time> at) noexcept {
  if (event.fence > kFenceMax) return false;
  raise_fence(event.fence);
  if (event.type == Event::Type::fence_floor) return true;

  Key* key = index_.find(event.kind, event.key);
  Hold* hold = find_hold(key, event.fence);
  switch (event.type) {
    case Event::Type::granted: {
      if (hold == nullptr) {
        if (event.limit < 1 || !is_sound(event.client) || !is_sound(event)) return false;
        if (key == nullptr) {
          if (!is_name(event.key)) return false;
          key = &create(event.kind, event.key, budget_.take_over_limit());
        }
        if (!adopt_limits(*key, event)) return false;
        // Its session ended with the process that served it. Its client may ask again, for all that
        // is known.
        const Holder owner = event.holder.is_secret()
                                 ? Holder::of_secret(event.holder.secret()).chosen()
                                 : event.holder;
        units_.take_over_limit(owner);
        hold = &add_hold(*key, StoredHolder(owner), takes_of(event), event.fence, event.ttl);
        clients_.keep(*hold, clients_.share(event.client));
        stats_.replayed_grant(*hold, at);
        // Or of its last renewal: all that is known.
        hold->since = at.value_or(event.expires_at - event.ttl);
        hold->renewed = true;  // for all that is known
      }
      replayed_ = hold;
      [[fallthrough]];
    }
    case Event::Type::renewed:
      if (hold == nullptr) return true;
      hold->ttl = event.ttl;
      timers_.arm(*hold, event.expires_at);
      return true;
    case Event::Type::resized:
      if (event.kind == Kind::lock || event.limit < 1) return false;
      if (key != nullptr) set_limit(*key, event.limit);
      return true;
    case Event::Type::ended:
      if (hold == nullptr) return true;
      stats_.replayed_end(*hold, event.cause, at);
      remove_hold(*hold);
      if (key->idle()) {
        forget(*key);
        budget_.give_back();
      }
      return true;
    case Event::Type::fence_floor: break;
  }
  return true;
}

void LockTable::prolong_leases(Time now, Duration least) noexcept {
  now_ = std::max(now_, now);
  Cursor all;
  index_.walk(all, SIZE_MAX, [&](Key& key) {
    const Holds& holds = key.holds;
    for (Hold* hold = holds.front(); hold != nullptr; hold = holds.next(hold)) {
      const Time soonest = now_ + std::min(hold->ttl, least);
      if (hold->deadline < soonest) timers_.arm(*hold, soonest);
    }
  });
}

void LockTable::raise_fence(Fence floor) noexcept {
  fence_ = raised_fence_ = std::max(fence_, floor);
}

void LockTable::describe(Cursor& cursor, std::size_t keys_max, std::vector<Event>& events) const {
  index_.walk(cursor, keys_max, [&](const Key& key) {
    const Holds& holds = key.holds;
    for (const Hold* hold = holds.front(); hold != nullptr; hold = holds.next(hold)) {
      events.push_back(granted(*hold));
    }
  });
}

// Takes over what a grant that a journal tells of says of its key. False if that contradicts what
// is there. A semaphore that was made smaller may have more holders than its limit.
bool LockTable::adopt_limits(Key& key, const Event& granted) {
  if (key.kind == Kind::lock && granted.first_limit != 0) return false;
  if (key.idle()) {
    const bool is_resized = granted.first_limit != 0;
    key.limit = is_resized ? granted.first_limit : granted.limit;
    if (is_resized) set_limit(key, granted.limit);
  }
  if (key.limit != granted.limit || first_limit(key) != granted.first_limit) {
    return false;
  }
  return key.resized || fits(key, takes_of(granted));
}

}  // namespace lockd
