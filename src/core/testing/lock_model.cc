// The calls.
#include "core/testing/lock_model.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace lockd {
namespace {

using Key = LockModel::Key;
using Held = LockModel::Held;
using Place = LockModel::Place;
using Answer = LockModel::Answer;
using Owner = LockModel::Owner;

template <typename Request>  // AcquireRequest or EnqueueRequest
Outcome flaw_of(const Request& request) {
  if (!is_name(request.key)) return Outcome::invalid_key;
  if (!request.holder.is_secret() && !is_name(request.holder.name()))
    return Outcome::invalid_holder;
  if (request.holder.session_id() > kSessionIdMax) return Outcome::invalid_holder;
  if (request.ttl < Duration(1)) return Outcome::invalid_ttl;
  if (request.limit < 1 || request.limit > kLimitMax) return Outcome::invalid_limit;
  if (request.kind == Kind::lock && request.limit != 1) return Outcome::invalid_limit;
  return Outcome::ok;
}

Held* find_hold(Key& key, Fence fence) {
  for (Held& hold : key.holds) {
    if (hold.fence == fence) return &hold;
  }
  return nullptr;
}

Held* find_two_phase_hold(Key& key, SessionId session) {
  for (Held& hold : key.holds) {
    if (hold.two_phase && hold.session == session) return &hold;
  }
  return nullptr;
}

std::optional<std::size_t> find_two_phase_place(const Key& key, SessionId session) {
  for (std::size_t i = 0; i < key.line.size(); ++i) {
    if (key.line[i].two_phase && key.line[i].session == session) return i;
  }
  return {};
}

// Why the hold cannot be renewed or released, or ok.
Outcome why_not(Key* key, const HoldId& id) {
  if (key == nullptr || key->holds.empty()) return Outcome::expired;
  if (const Held* hold = find_hold(*key, id.fence)) {
    return hold->owner == Owner(id.holder) ? Outcome::ok : Outcome::not_holder;
  }
  const bool is_older =
      std::ranges::any_of(key->holds, [&](const Held& hold) { return hold.fence > id.fence; });
  return is_older ? Outcome::stale : Outcome::not_holder;
}

bool has_session(const Key& key, SessionId session) {
  const auto is_its = [&](const auto& item) { return item.session == session; };
  return std::ranges::any_of(key.holds, is_its) || std::ranges::any_of(key.line, is_its);
}

}  // namespace

template <typename Request>
Answer LockModel::grant_new(Key* key, const Request& request, bool has_spare) {
  if (is_exhausted(request.kind, request.key)) return {Outcome::fences_exhausted};
  if (key == nullptr) {
    if (!has_spare && keys_.size() >= keys_max_) return {Outcome::max_keys};
    key = &keys_.emplace_back(Key{.kind = request.kind, .name = std::string(request.key)});
  }
  key->limit = request.limit;
  return {Outcome::ok, grant(*key, Owner(request.holder), request.ttl).grant()};
}

Answer LockModel::acquire(Time now, const AcquireRequest& request, Listener* listener,
                          std::uint64_t id, bool has_spare) {
  if (Outcome flaw = flaw_of(request); flaw != Outcome::ok) return refuse(now, flaw);
  if (request.wait < Duration(0)) return refuse(now, Outcome::invalid_wait);
  Key* key = at(now, request.kind, request.key);
  if (key != nullptr && !key->idle()) {
    if (key->limit != request.limit) return {Outcome::limit_mismatch};
    if (Held* own = key->find_named(Owner(request.holder))) {
      own->ttl = request.ttl;
      return {Outcome::ok, refresh(*key, *own, request.ttl)};
    }
    if (!key->has_room()) {
      if (request.wait == Duration(0)) return {Outcome::held};
      if (is_full(*key)) return {Outcome::max_waiters};
      Place& place = join(*key, request.holder, request.ttl);
      await(place, request.wait, listener, id);
      return {Outcome::queued};
    }
  }
  return grant_new(key, request, has_spare);
}

Answer LockModel::enqueue(Time now, const EnqueueRequest& request, bool has_spare) {
  const SessionId session = request.holder.session_id();
  if (Outcome flaw = flaw_of(request); flaw != Outcome::ok) return refuse(now, flaw);
  if (session == 0) return refuse(now, Outcome::invalid_holder);
  Key* key = at(now, request.kind, request.key);
  if (key != nullptr) {
    if (find_two_phase_hold(*key, session) || find_two_phase_place(*key, session)) {
      return {Outcome::already_enqueued};
    }
    if (!key->idle() && key->limit != request.limit) return {Outcome::limit_mismatch};
    if (!key->idle() && !key->has_room()) {
      if (is_full(*key)) return {Outcome::max_waiters};
      std::erase(key->lapsed, session);
      join(*key, request.holder, request.ttl).two_phase = true;
      return {Outcome::queued};
    }
  }
  const Answer answer = grant_new(key, request, has_spare);
  if (answer.outcome == Outcome::ok) {
    key = find_key(request.kind, request.key);
    std::erase(key->lapsed, session);
    key->holds.back().two_phase = true;
  }
  return answer;
}

Answer LockModel::await_turn(Time now, SessionId session, Kind kind, std::string_view name,
                             Duration wait, Listener* listener, std::uint64_t id) {
  if (!is_name(name)) return refuse(now, Outcome::invalid_key);
  if (wait < Duration(0)) return refuse(now, Outcome::invalid_wait);
  Key* key = at(now, kind, name);
  if (key == nullptr) return {Outcome::not_enqueued};
  if (Held* hold = find_two_phase_hold(*key, session)) {
    hold->two_phase = hold->untold = false;
    return {Outcome::ok, refresh(*key, *hold, hold->ttl)};
  }
  if (std::erase(key->lapsed, session) > 0) return {Outcome::expired};
  const auto place = find_two_phase_place(*key, session);
  if (!place.has_value()) return {Outcome::not_enqueued};
  if (key->line[*place].listener != nullptr) return {Outcome::not_enqueued};
  if (wait == Duration(0)) {
    settle(*key, *place, Outcome::timeout);
    return {Outcome::timeout};
  }
  await(key->line[*place], wait, listener, id);
  return {Outcome::queued};
}

Answer LockModel::renew(Time now, const HoldId& id, std::optional<Duration> ttl) {
  if (!is_name(id.key)) return refuse(now, Outcome::invalid_key);
  if (ttl.has_value() && *ttl < Duration(1)) return refuse(now, Outcome::invalid_ttl);
  Key* key = at(now, id.kind, id.key);
  if (Outcome no = why_not(key, id); no != Outcome::ok) return {no};
  Held& hold = *find_hold(*key, id.fence);
  return {Outcome::ok, refresh(*key, hold, ttl.value_or(hold.ttl))};
}

Outcome LockModel::release(Time now, const HoldId& id) {
  if (!is_name(id.key)) return refuse(now, Outcome::invalid_key).outcome;
  Key* key = at(now, id.kind, id.key);
  if (Outcome no = why_not(key, id); no != Outcome::ok) return no;
  end_hold(*key, id.fence, EndCause::released);
  pass_on(*key);
  return Outcome::ok;
}

bool LockModel::withdraw(Time now, const HoldId& id) {
  Key* key = at(now, id.kind, id.key);
  if (why_not(key, id) != Outcome::ok || find_hold(*key, id.fence)->renewed) return false;
  end_hold(*key, id.fence, EndCause::disconnected);
  pass_on(*key);
  return true;
}

bool LockModel::cancel(Time now, const Listener* listener, std::uint64_t id) {
  follow(now);
  const auto find_place = [&](const Key& key) {
    return std::ranges::find_if(
        key.line, [&](const Place& place) { return place.listener == listener && place.id == id; });
  };
  for (Key& key : keys_) {
    if (find_place(key) == key.line.end()) continue;
    run_all(key);
    const auto place = find_place(key);
    if (place == key.line.end()) return false;
    settle(key, static_cast<std::size_t>(place - key.line.begin()), Outcome::cancelled);
    return true;
  }
  return false;
}

FenceStatus LockModel::fence(Time now, std::string_view name) {
  const Key* key = at(now, Kind::lock, name);
  if (key == nullptr) return {false, last_fence_};
  return {!key->holds.empty(), key->last_fence};
}

std::optional<Conflict> LockModel::explain(Time now, Kind kind, std::string_view name) {
  return conflict(at(now, kind, name));
}

std::optional<Conflict> LockModel::conflict(const Key* key) {
  if (key == nullptr || key->holds.empty()) return {};
  const Held& latest = key->holds.back();
  return Conflict{.holder = latest.owner.display_name(),
                  .fence = latest.fence,
                  .expires_at = latest.deadline,
                  .limit = key->limit,
                  .holders = static_cast<std::uint32_t>(key->holds.size()),
                  .waiters = static_cast<std::uint32_t>(key->line.size())};
}

void LockModel::end_session(Time now, SessionId session, bool keep_holds) {
  follow(now);
  for (Key& key : keys_) {
    if (has_session(key, session)) end_session(key, session, keep_holds);
    std::erase(key.lapsed, session);
  }
}

// Places go first: what a hold leaves behind must not fall to the session that ends.
void LockModel::end_session(Key& key, SessionId session, bool keep_holds) {
  run_all(key);
  for (std::size_t i = key.line.size(); i-- > 0;) {
    if (key.line[i].session == session) settle(key, i, Outcome::cancelled);
  }
  std::vector<Fence> ending;
  for (Held& hold : key.holds) {
    if (hold.session != session) continue;
    if (!keep_holds || hold.untold) ending.push_back(hold.fence);
    hold.two_phase = false;
    hold.session = 0;
  }
  for (Fence fence : ending) {
    end_hold(key, fence, EndCause::disconnected);
    pass_on(key);
  }
}

void LockModel::end_waits(Outcome why) {
  for (Key& key : keys_) {
    while (!key.line.empty()) settle(key, 0, why);
  }
}

bool LockModel::knows_session(SessionId session) const {
  return std::ranges::any_of(keys_, [&](const Key& key) { return has_session(key, session); });
}

}  // namespace lockd
