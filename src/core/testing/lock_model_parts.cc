// What the calls are made of: how keys, holds and places in line begin and end.
#include <algorithm>
#include <utility>

#include "core/testing/lock_model.h"

namespace lockd {
namespace {

using Key = LockModel::Key;
using Held = LockModel::Held;
using Place = LockModel::Place;

}  // namespace

LockModel::Owner::Owner(const Holder& holder)
    : is_secret(holder.is_secret()),
      name(holder.name()),
      secret(holder.secret()),
      session(holder.session_id()) {}

std::string LockModel::Owner::display_name() const {
  return is_secret ? "tcp:" + std::to_string(session) : name;
}

LockModel::Happened::Happened(const Event& event)
    : type(event.type), kind(event.kind), key(event.key), fence(event.fence) {
  if (type == Event::Type::ended) {
    cause = event.cause;
    return;
  }
  ttl = event.ttl;
  expires_at = event.expires_at;
  if (type == Event::Type::granted) {
    owner = Owner(event.holder);
    limit = event.limit;
  }
}

// Keys.

Key* LockModel::find_key(Kind kind, std::string_view name) {
  for (Key& key : keys_) {
    if (key.kind == kind && key.name == name) return &key;
  }
  return nullptr;
}

const Key* LockModel::find(Kind kind, std::string_view name) const {
  for (const Key& key : keys_) {
    if (key.kind == kind && key.name == name) return &key;
  }
  return nullptr;
}

std::size_t LockModel::forget_idle(Time since, std::size_t keys_max, const IsLeft& is_left) {
  std::size_t forgotten = 0;
  while (forgotten < keys_max) {
    const auto key = longest_idle(is_left);
    if (key == keys_.end() || key->idle_since > since) break;
    keys_.erase(key);
    ++forgotten;
  }
  return forgotten;
}

bool LockModel::reclaim_idle(const IsLeft& is_left) {
  const auto key = longest_idle(is_left);
  if (key == keys_.end()) return false;
  keys_.erase(key);
  return keys_.size() < keys_max_;
}

// Among keys that became idle at one instant, one that the table has forgotten.
std::vector<Key>::iterator LockModel::longest_idle(const IsLeft& is_left) {
  auto longest = keys_.end();
  for (auto key = keys_.begin(); key != keys_.end(); ++key) {
    if (!key->idle()) continue;
    if (longest == keys_.end() || key->idle_since < longest->idle_since ||
        (key->idle_since == longest->idle_since && !is_left(*key))) {
      longest = key;
    }
  }
  return longest;
}

// Holds.

Held* LockModel::Key::find_named(const Owner& owner) {
  for (Held& hold : holds) {
    if (!owner.is_secret && hold.owner == owner) return &hold;
  }
  return nullptr;
}

// Fences are the table's to number; a 0 is none, and no table grants it.
Fence LockModel::next_fence(Kind kind, std::string_view name) const {
  const Key* key = find(kind, name);
  for (const Event& event : seen_->events) {
    if (event.type != Event::Type::granted || event.kind != kind || event.key != name) continue;
    if (key == nullptr || event.fence > key->last_fence) return event.fence;
  }
  return 0;
}

// The last fence goes to whichever key comes first, so the whole call counts.
bool LockModel::is_exhausted(Kind kind, std::string_view name) const {
  Fence last = last_fence_;
  for (const Event& event : seen_->events) {
    if (event.type == Event::Type::granted) last = std::max(last, event.fence);
  }
  return last >= kFenceMax && next_fence(kind, name) == 0;
}

Held& LockModel::grant(Key& key, const Owner& owner, Duration ttl) {
  const Fence fence = next_fence(key.kind, key.name);
  last_fence_ = std::max(last_fence_, fence);
  key.last_fence = std::max(key.last_fence, fence);
  key.holds.push_back({.owner = owner,
                       .session = owner.session,
                       .fence = fence,
                       .ttl = ttl,
                       .deadline = now_ + ttl,
                       .since = now_});
  earliest_ = std::min(earliest_, now_ + ttl);
  events_.emplace_back(Event{.type = Event::Type::granted,
                             .kind = key.kind,
                             .limit = key.limit,
                             .key = key.name,
                             .holder = owner.view(),
                             .fence = fence,
                             .ttl = ttl,
                             .expires_at = now_ + ttl});
  return key.holds.back();
}

Grant LockModel::refresh(const Key& key, Held& hold, Duration ttl) {
  hold.deadline = now_ + ttl;
  hold.renewed = true;
  earliest_ = std::min(earliest_, hold.deadline);
  events_.emplace_back(Event{.type = Event::Type::renewed,
                             .kind = key.kind,
                             .key = key.name,
                             .fence = hold.fence,
                             .ttl = hold.ttl,
                             .expires_at = hold.deadline});
  return hold.grant();
}

// pass_on() must follow.
void LockModel::end_hold(Key& key, Fence fence, EndCause cause) {
  const auto hold = std::ranges::find(key.holds, fence, &Held::fence);
  if (hold->two_phase && cause == EndCause::expired) key.lapsed.push_back(hold->session);
  key.holds.erase(hold);
  events_.emplace_back(Event{.type = Event::Type::ended,
                             .kind = key.kind,
                             .cause = cause,
                             .key = key.name,
                             .fence = fence});
}

void LockModel::pass_on(Key& key) {
  while (key.has_room() && !key.line.empty()) promote(key);
  if (key.idle()) key.idle_since = now_;
}

// Gives the first in line what it waits for.
void LockModel::promote(Key& key) {
  const Place first = key.line.front();
  Held* own = key.find_named(first.owner);
  if (own != nullptr && own->deadline <= now_) {
    end_hold(key, own->fence, EndCause::expired);
    own = nullptr;
  }
  if (own != nullptr) {
    own->ttl = first.ttl;
    settle(key, 0, Outcome::ok, refresh(key, *own, first.ttl));
  } else if (is_exhausted(key.kind, key.name)) {
    settle(key, 0, Outcome::fences_exhausted);
  } else {
    Held& hold = grant(key, first.owner, first.ttl);
    hold.two_phase = hold.untold = first.two_phase && first.listener == nullptr;
    settle(key, 0, Outcome::ok, hold.grant());
  }
}

// Lines.

bool LockModel::is_full(const Key& key) const {
  return options_.waiters_max != 0 && key.line.size() >= options_.waiters_max;
}

Place& LockModel::join(Key& key, const Holder& holder, Duration ttl) {
  key.line.push_back(
      {.owner = Owner(holder), .session = holder.session_id(), .ttl = ttl, .since = now_});
  return key.line.back();
}

void LockModel::await(Place& place, Duration wait, Listener* listener, std::uint64_t id) {
  place.listener = listener;
  place.id = id;
  place.deadline = now_ + wait;
  earliest_ = std::min(earliest_, place.deadline);
}

// The place is gone; whoever waited is told.
void LockModel::settle(Key& key, std::size_t at, Outcome outcome, const Grant& grant) {
  const Place place = key.line[at];
  key.line.erase(key.line.begin() + static_cast<std::ptrdiff_t>(at));
  if (place.listener == nullptr) return;
  settled_.push_back({place.listener, place.id, outcome, grant, now_ - place.since});
}

}  // namespace lockd
