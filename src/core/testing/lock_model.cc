#include "core/testing/lock_model.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace lockd {
namespace {

using ModelKey = LockModel::ModelKey;
using ModelHold = LockModel::ModelHold;
using ModelPlace = LockModel::ModelPlace;
using ModelReply = LockModel::ModelReply;
using Owner = LockModel::Owner;

Outcome flaw_of(const KeyRequest& request) {
  if (!is_name(request.key)) return Outcome::invalid_key;
  if (!request.holder.is_secret() && !is_name(request.holder.name()))
    return Outcome::invalid_holder;
  if (request.holder.session_id() > kSessionIdMax) return Outcome::invalid_holder;
  if (request.ttl < Duration(1)) return Outcome::invalid_ttl;
  if (request.limit < 1 || request.limit > kLimitMax) return Outcome::invalid_limit;
  if (request.kind == Kind::lock && request.limit != 1) return Outcome::invalid_limit;
  if (request.kind == Kind::semaphore && request.mode == Mode::shared) return Outcome::invalid_mode;
  if (request.permits < 1 || request.permits > request.limit) return Outcome::invalid_permits;
  return Outcome::ok;
}

ClientIdentity client_of_session(const Holder& holder) {
  const Session* session = holder.session();
  return session == nullptr || session->client == nullptr ? ClientIdentity{} : *session->client;
}

ClientIdentity client_of(const KeyRequest& request) {
  if (request.holder.is_secret()) return client_of_session(request.holder);
  return {"", std::string(request.peer), std::string(request.note)};
}

ModelHold* find_hold(ModelKey& key, Fence fence) {
  for (ModelHold& hold : key.holds) {
    if (hold.fence == fence) return &hold;
  }
  return nullptr;
}

ModelHold* find_two_phase_hold(ModelKey& key, SessionId session) {
  for (ModelHold& hold : key.holds) {
    if (hold.two_phase && hold.session == session) return &hold;
  }
  return nullptr;
}

std::optional<std::size_t> find_two_phase_place(const ModelKey& key, SessionId session) {
  for (std::size_t i = 0; i < key.queue.size(); ++i) {
    if (key.queue[i].two_phase && key.queue[i].session == session) return i;
  }
  return {};
}

// ok if a repeated request matches the hold or place of its owner; otherwise the mismatch.
Outcome compare_request(Mode held, std::uint32_t permits_held, Mode asked, std::uint32_t permits) {
  if (asked != held) return Outcome::mode_mismatch;
  return permits == permits_held ? Outcome::ok : Outcome::permits_mismatch;
}

bool has_state_at(const ModelKey& key, SessionId session) {
  const auto is_match = [&](const auto& item) { return item.session == session; };
  return std::ranges::any_of(key.holds, is_match) || std::ranges::any_of(key.queue, is_match);
}

}  // namespace

ModelReply LockModel::grant_new(ModelKey* key, const KeyRequest& request, bool has_spare) {
  if (is_exhausted(request.kind, request.key)) return {Outcome::fences_exhausted};
  if (key == nullptr) {
    if (!has_spare && keys_.size() >= keys_max_) return {Outcome::max_keys};
  }
  if (Outcome no = why_no_more(request.holder); no != Outcome::ok) return {no};
  if (key == nullptr) {
    key = &keys_.emplace_back(ModelKey{.kind = request.kind, .name = std::string(request.key)});
  }
  if (key->idle()) key->limit = request.limit;
  return {Outcome::ok, grant(*key, place_of(request)).grant()};
}

ModelReply LockModel::acquire(Time now, const KeyRequest& request, Listener* listener,
                              std::uint64_t id, bool has_spare) {
  if (Outcome flaw = flaw_of(request); flaw != Outcome::ok) return refuse(now, flaw);
  if (request.wait < Duration(0)) return refuse(now, Outcome::invalid_wait);
  ModelKey* key = at(now, request.kind, request.key);
  if (key != nullptr && has_binding_limit(*key)) {
    const Owner asker(request.holder);
    if (!key->matches(request.limit)) return {Outcome::limit_mismatch};
    if (ModelHold* own = key->find_own(asker)) {
      const Outcome no = compare_request(own->mode, own->permits, request.mode, request.permits);
      if (no != Outcome::ok) return {no};
      take_over(*own, asker);
      return {Outcome::ok, grant_again(*key, *own, request.ttl)};
    }
    if (request.permits > key->limit) return {Outcome::limit_mismatch};
    if (ModelPlace* place = key->find_place(asker)) {
      const Outcome no =
          compare_request(place->mode, place->permits, request.mode, request.permits);
      if (no != Outcome::ok) return {no};
      if (!take_over(*place, asker)) return {Outcome::taken_over};
      if (request.wait == Duration(0)) {
        leave_queue(*key, static_cast<std::size_t>(place - key->queue.data()), Outcome::timeout);
        return {Outcome::timeout};
      }
      place->ttl = capped(request.ttl);
      await(*place, request.wait, listener, id);
      return {Outcome::queued};
    }
    if (!key->queue.empty() || !key->has_room(request.mode, request.permits)) {
      const Outcome full = why_no_place(is_full(*key), request.wait);
      if (full != Outcome::ok) return {full};
      if (Outcome no = why_no_more(request.holder); no != Outcome::ok) return {no};
      key->queue.push_back(place_of(request));
      await(key->queue.back(), request.wait, listener, id);
      return {Outcome::queued};
    }
  }
  return grant_new(key, request, has_spare);
}

ModelReply LockModel::enqueue(Time now, const KeyRequest& request, bool has_spare) {
  const SessionId session = request.holder.session_id();
  if (Outcome flaw = flaw_of(request); flaw != Outcome::ok) return refuse(now, flaw);
  if (session == 0) return refuse(now, Outcome::invalid_holder);
  ModelKey* key = at(now, request.kind, request.key);
  if (key != nullptr) {
    if (const std::optional<ModelReply> again = enqueue_again(*key, request)) return *again;
    if (find_two_phase_hold(*key, session) || find_two_phase_place(*key, session)) {
      return {Outcome::already_enqueued};
    }
    const bool matches = key->matches(request.limit) && request.permits <= key->limit;
    if (has_binding_limit(*key) && !matches) return {Outcome::limit_mismatch};
    const bool has_room = key->queue.empty() && key->has_room(request.mode, request.permits);
    if (!key->idle() && !has_room) {
      if (is_full(*key)) return {Outcome::max_waiters};
      if (Outcome no = why_no_more(request.holder); no != Outcome::ok) return {no};
      std::erase(key->lapsed, session);
      key->queue.push_back(place_of(request));
      key->queue.back().two_phase = true;
      return {Outcome::queued};
    }
  }
  const ModelReply answer = grant_new(key, request, has_spare);
  if (answer.outcome == Outcome::ok) {
    key = find_key(request.kind, request.key);
    std::erase(key->lapsed, session);
    key->holds.back().two_phase = true;
  }
  return answer;
}

// Whether the asker now owns the hold. A hold of a later session stays with that session.
bool LockModel::take_over(ModelHold& hold, const Owner& asker) {
  if (!asker.is_secret) return true;
  if (asker.session < hold.owner.session) return false;
  hold.owner = asker;
  hold.session = asker.session;
  hold.two_phase = hold.unacknowledged = false;
  return true;
}

// As for a hold. An earlier wait at this place ends as taken_over.
bool LockModel::take_over(ModelPlace& place, const Owner& asker) {
  if (asker.session < place.owner.session) return false;
  if (place.listener != nullptr) {
    settled_.push_back({place.listener, place.id, Outcome::taken_over, {}, now_ - place.since});
  }
  place.owner = asker;
  place.session = asker.session;
  place.two_phase = false;
  place.listener = nullptr;
  place.id = 0;
  place.deadline = Time::never();
  return true;
}

// Empty if this secret has neither a hold nor a place.
std::optional<ModelReply> LockModel::enqueue_again(ModelKey& key, const KeyRequest& request) {
  const Owner asker(request.holder);
  ModelHold* own = key.find_own(asker);
  ModelPlace* place = key.find_place(asker);
  if (own == nullptr && place == nullptr) return {};
  const ModelHold* held = find_two_phase_hold(key, asker.session);
  const auto queued = find_two_phase_place(key, asker.session);
  const bool is_other_hold = held != nullptr && held != own;
  const bool is_other_place = queued.has_value() && &key.queue[*queued] != place;
  if (is_other_hold || is_other_place) return ModelReply{Outcome::already_enqueued};
  if (!key.matches(request.limit)) return ModelReply{Outcome::limit_mismatch};
  if (own == nullptr && request.permits > key.limit) return ModelReply{Outcome::limit_mismatch};
  const Mode mode = own == nullptr ? place->mode : own->mode;
  const std::uint32_t permits = own == nullptr ? place->permits : own->permits;
  const Outcome no = compare_request(mode, permits, request.mode, request.permits);
  if (no != Outcome::ok) return ModelReply{no};
  const bool is_match = own == nullptr ? take_over(*place, asker) : take_over(*own, asker);
  if (is_match) {
    std::erase(key.lapsed, asker.session);
    (own == nullptr ? place->two_phase : own->two_phase) = true;
  }
  if (own != nullptr) return ModelReply{Outcome::ok, grant_again(key, *own, request.ttl)};
  if (!is_match) return ModelReply{Outcome::taken_over};
  place->ttl = capped(request.ttl);
  return ModelReply{Outcome::queued};
}

ModelReply LockModel::await_turn(Time now, SessionId session, Kind kind, std::string_view name,
                                 Duration wait, Listener* listener, std::uint64_t id) {
  if (!is_name(name)) return refuse(now, Outcome::invalid_key);
  if (wait < Duration(0)) return refuse(now, Outcome::invalid_wait);
  ModelKey* key = at(now, kind, name);
  if (key == nullptr) return {Outcome::not_enqueued};
  if (ModelHold* hold = find_two_phase_hold(*key, session)) {
    hold->two_phase = hold->unacknowledged = false;
    return {Outcome::ok, refresh(*key, *hold, hold->ttl)};
  }
  if (std::erase(key->lapsed, session) > 0) return {Outcome::expired};
  const auto place = find_two_phase_place(*key, session);
  if (!place.has_value()) return {Outcome::not_enqueued};
  if (key->queue[*place].listener != nullptr) return {Outcome::not_enqueued};
  if (wait == Duration(0)) {
    leave_queue(*key, *place, Outcome::timeout);
    return {Outcome::timeout};
  }
  await(key->queue[*place], wait, listener, id);
  return {Outcome::queued};
}

ModelReply LockModel::renew(Time now, const KeyHold& id, std::optional<Duration> ttl) {
  if (!is_name(id.key)) return refuse(now, Outcome::invalid_key);
  if (ttl.has_value() && *ttl < Duration(1)) return refuse(now, Outcome::invalid_ttl);
  ModelKey* key = at(now, id.kind, id.key);
  if (Outcome no = why_not(key, id); no != Outcome::ok) return {no};
  ModelHold& hold = *find_hold(*key, id.fence);
  const Duration lease = capped(ttl.value_or(hold.ttl));
  Grant grant = refresh(*key, hold, lease);
  grant.ttl = lease;
  return {Outcome::ok, grant};
}

// No caller can know a fence that is granted within its call.
Outcome LockModel::why_not(ModelKey* key, const KeyHold& id) const {
  if (key == nullptr || key->holds.empty()) return Outcome::expired;
  if (const ModelHold* hold = find_hold(*key, id.fence)) {
    const bool is_match = hold->owner == Owner(id.holder) && hold->fence <= known_;
    return is_match ? Outcome::ok : Outcome::not_holder;
  }
  const bool is_older =
      std::ranges::any_of(key->holds, [&](const ModelHold& hold) { return hold.fence > id.fence; });
  return is_older ? Outcome::stale : Outcome::not_holder;
}

Outcome LockModel::release(Time now, const KeyHold& id) {
  if (!is_name(id.key)) return refuse(now, Outcome::invalid_key).outcome;
  ModelKey* key = at(now, id.kind, id.key);
  if (Outcome no = why_not(key, id); no != Outcome::ok) return no;
  end_hold(*key, id.fence, EndCause::released);
  grant_next(*key);
  return Outcome::ok;
}

bool LockModel::withdraw(Time now, const KeyHold& id) {
  ModelKey* key = at(now, id.kind, id.key);
  if (why_not(key, id) != Outcome::ok || find_hold(*key, id.fence)->renewed) return false;
  end_hold(*key, id.fence, EndCause::disconnected);
  grant_next(*key);
  return true;
}

bool LockModel::cancel(Time now, const Listener* listener, std::uint64_t id) {
  follow(now);
  const auto find_place = [&](const ModelKey& key) {
    return std::ranges::find_if(key.queue, [&](const ModelPlace& place) {
      return place.listener == listener && place.id == id && place.part == 0;
    });
  };
  for (ModelKey& key : keys_) {
    if (find_place(key) == key.queue.end()) continue;
    end_all_due(key);
    const auto place = find_place(key);
    if (place == key.queue.end()) return false;
    leave_queue(key, static_cast<std::size_t>(place - key.queue.begin()), Outcome::cancelled);
    return true;
  }
  return false;
}

Outcome LockModel::revoke(Time now, const LockTable::Revocation& revocation,
                          std::vector<Fence>* ended) {
  if (!is_name(revocation.key)) return refuse(now, Outcome::invalid_key).outcome;
  ModelKey* key = at(now, revocation.kind, revocation.key);
  if (key == nullptr || key->holds.empty()) return Outcome::expired;
  for (const ModelHold& hold : key->holds) {
    const bool is_meant = revocation.fence.has_value() ? hold.fence == *revocation.fence
                                                       : hold.fence <= revocation.last;
    if (is_meant && hold.fence <= known_) ended->push_back(hold.fence);
  }
  for (const Fence fence : *ended) {
    end_hold(*key, fence, EndCause::revoked);
    grant_next(*key);
  }
  return ended->empty() ? Outcome::stale : Outcome::ok;
}

Outcome LockModel::resize(Time now, std::string_view name, std::uint32_t limit) {
  if (!is_name(name)) return refuse(now, Outcome::invalid_key).outcome;
  if (limit < 1 || limit > kLimitMax) return refuse(now, Outcome::invalid_limit).outcome;
  ModelKey* key = at(now, Kind::semaphore, name);
  if (key == nullptr || key->idle()) return Outcome::expired;
  if (key->first_limit == 0) key->first_limit = key->limit;
  key->limit = limit;
  events_.emplace_back(Event{
      .type = Event::Type::resized, .kind = Kind::semaphore, .limit = limit, .key = key->name});
  for (std::size_t i = key->queue.size(); i-- > 0;) {
    const ModelPlace place = key->queue[i];
    if (place.permits <= limit) continue;
    place.of_set ? end_set(place.id, Outcome::limit_mismatch)
                 : settle(*key, i, Outcome::limit_mismatch);
    i = std::min(i, key->queue.size());
  }
  grant_next(*key);
  return Outcome::ok;
}

FenceStatus LockModel::fence(Time now, std::string_view name) {
  const ModelKey* key = at(now, Kind::lock, name);
  if (key == nullptr) return {false, last_fence_};
  return {!key->holds.empty(), key->last_fence};
}

std::optional<Conflict> LockModel::explain(Time now, Kind kind, std::string_view name) {
  const ModelKey* key = at(now, kind, name);
  if (key == nullptr || key->holds.empty()) return {};
  return conflict(*key);
}

Conflict LockModel::conflict(const ModelKey& key) {
  Conflict conflict;
  conflict.limit = key.limit;
  conflict.holders = static_cast<std::uint32_t>(key.holds.size());
  conflict.waiters = static_cast<std::uint32_t>(key.queue.size());
  if (key.kind == Kind::semaphore) {
    conflict.permits = static_cast<std::uint32_t>(key.permits_in_use());
  }
  if (key.holds.empty()) return conflict;
  const ModelHold& latest = key.holds.back();
  conflict.holder = latest.owner.display_name();
  conflict.session = latest.owner.session;
  conflict.client = std::make_shared<const ClientIdentity>(latest.client);
  conflict.fence = latest.fence;
  conflict.expires_at = latest.deadline;
  conflict.mode = latest.mode;
  return conflict;
}

void LockModel::end_session(Time now, SessionId session, bool keep_holds) {
  follow(now);
  for (ModelKey& key : keys_) {
    if (has_state_at(key, session)) end_session(key, session, keep_holds);
    std::erase(key.lapsed, session);
  }
}

// All places end first, so that no released hold is granted to the ending session.
void LockModel::end_session(ModelKey& key, SessionId session, bool keep_holds) {
  end_all_due(key);
  for (std::size_t i = key.queue.size(); i-- > 0;) {
    if (key.queue[i].session == session) settle(key, i, Outcome::cancelled);
  }
  grant_next(key);
  std::vector<Fence> ending;
  for (ModelHold& hold : key.holds) {
    if (hold.session != session) continue;
    if (!keep_holds || hold.unacknowledged) ending.push_back(hold.fence);
    hold.two_phase = false;
    hold.session = 0;
  }
  for (Fence fence : ending) {
    end_hold(key, fence, EndCause::disconnected);
    grant_next(key);
  }
}

void LockModel::end_waits(Outcome why) {
  for (ModelKey& key : keys_) {
    if (key.queue.empty()) continue;
    for (const ModelPlace& place : key.queue) {
      if (place.listener == nullptr || place.part != 0) continue;
      settled_.push_back({place.listener, place.id, why, {}, now_ - place.since});
    }
    key.queue.clear();
    grant_next(key);
  }
  follow(now_);
}

Owned LockModel::owned(SessionId session) const {
  const auto is_match = [&](const auto& item) { return item.session == session; };
  Owned all;
  for (const ModelKey& key : keys_) {
    all.holds += static_cast<std::uint64_t>(std::ranges::count_if(key.holds, is_match));
    all.places += static_cast<std::uint64_t>(std::ranges::count_if(key.queue, is_match));
  }
  return all;
}

bool LockModel::has_session(SessionId session) const {
  return std::ranges::any_of(keys_,
                             [&](const ModelKey& key) { return has_state_at(key, session); });
}

// Time: due leases and waits, and how far the model follows the table.

void LockModel::watch(const Effects& seen) {
  seen_ = &seen;
  broken_.clear();
  events_.clear();
  settled_.clear();
  earliest_ = Time::never();
}

// Ends the leases and waits that the table has ended by itself. The order is that of the deadlines
// over all keys, because the end of a set affects several.
void LockModel::follow(Time now) {
  now_ = std::max(now_, now);
  if (seen_->events.empty() && seen_->wait_results.empty()) return;
  while (true) {
    std::optional<Due> first;
    ModelKey* of = nullptr;
    for (ModelKey& key : keys_) {
      if (key.set_left && is_front_granted(key)) grant_next_if_set_left(key);
      const std::optional<Due> due = is_ahead(key) ? next_due(key) : next_end_of_set(key);
      if (!due.has_value() || (first.has_value() && first->rank <= due->rank)) continue;
      first = due;
      of = &key;
    }
    if (!first.has_value()) return;
    end_due(*of, *first);
  }
}

// Whether the table has ended a hold or a place of this key that the model still has.
bool LockModel::is_ahead(const ModelKey& key) const {
  const auto has_settled = [&](const ModelPlace& place) {
    return !place.of_set && turn_of(place) < seen_->wait_results.size();
  };
  return std::ranges::any_of(key.holds,
                             [&](const ModelHold& hold) { return has_ended(key, hold); }) ||
         std::ranges::any_of(key.queue, has_settled);
}

bool LockModel::has_ended(const ModelKey& key, const ModelHold& hold) const {
  return std::ranges::any_of(seen_->events, [&](const Event& event) {
    return event.type == Event::Type::ended && event.fence == hold.fence &&
           event.kind == key.kind && event.key == key.name;
  });
}

// The index of the place's result in the table's effects; past the end if the place still waits.
std::size_t LockModel::turn_of(const ModelPlace& place) const {
  const auto is_match = [&](const WaitResult& result) {
    return result.listener == place.listener && result.id == place.id;
  };
  const auto found = place.listener == nullptr
                         ? seen_->wait_results.end()
                         : std::ranges::find_if(seen_->wait_results, is_match);
  return static_cast<std::size_t>(found - seen_->wait_results.begin());
}

// The first lease or wait that is due, by deadline, leases before waits. Among equals, leases that
// the table has ended come first, and waits are in the table's order, which decides what fits next.
std::optional<LockModel::Due> LockModel::next_due(const ModelKey& key) const {
  std::optional<Due> first;
  for (const ModelHold& hold : key.holds) {
    const Due due{{hold.deadline, false, !has_ended(key, hold)}, hold.fence, 0};
    if (hold.deadline <= now_ && (!first.has_value() || due.rank < first->rank)) first = due;
  }
  for (std::size_t i = 0; i < key.queue.size(); ++i) {
    const Due due{{key.queue[i].deadline, true, turn_of(key.queue[i])}, 0, i};
    if (due.deadline() <= now_ && (!first.has_value() || due.rank < first->rank)) first = due;
  }
  return first;
}

// The first due place whose set the table has ended, perhaps through another key.
std::optional<LockModel::Due> LockModel::next_end_of_set(const ModelKey& key) const {
  std::optional<Due> first;
  for (std::size_t i = 0; i < key.queue.size(); ++i) {
    const ModelPlace& place = key.queue[i];
    const Due due{{place.deadline, true, turn_of(place)}, 0, i};
    const bool has_ended = place.of_set && turn_of(place) < seen_->wait_results.size();
    if (!has_ended || place.deadline > now_) continue;
    if (!first.has_value() || due.rank < first->rank) first = due;
  }
  return first;
}

void LockModel::end_due(ModelKey& key, const Due& due) {
  if (due.is_wait()) return leave_queue(key, due.place, Outcome::timeout);
  end_hold(key, due.lease, EndCause::expired);
  grant_next(key);
}

void LockModel::end_all_due(ModelKey& key) {
  while (const std::optional<Due> due = next_due(key)) end_due(key, *due);
}

// The key of a call, after everything due there has ended. Null if there is none.
ModelKey* LockModel::at(Time now, Kind kind, std::string_view name) {
  known_ = last_fence_;
  follow(now);
  ModelKey* key = find_key(kind, name);
  if (key != nullptr) {
    end_all_due(*key);
    grant_next_if_set_left(*key);
  }
  return key;
}

void LockModel::advance(Time now) { follow(now); }

// An invalid request touches no key.
ModelReply LockModel::refuse(Time now, Outcome flaw) {
  follow(now);
  return {flaw};
}

Time LockModel::next_deadline() const {
  Time next = Time::never();
  for (const ModelKey& key : keys_) {
    for (const ModelHold& hold : key.holds) next = std::min(next, hold.deadline);
    for (const ModelPlace& place : key.queue) next = std::min(next, place.deadline);
  }
  return next;
}

// Keys.

ModelKey* LockModel::find_key(Kind kind, std::string_view name) {
  for (ModelKey& key : keys_) {
    if (key.kind == kind && key.name == name) return &key;
  }
  return nullptr;
}

const ModelKey* LockModel::find(Kind kind, std::string_view name) const {
  for (const ModelKey& key : keys_) {
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

// The key that has been idle longest; among equals, one that the table has forgotten.
std::vector<ModelKey>::iterator LockModel::longest_idle(const IsLeft& is_left) {
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

ModelHold* LockModel::ModelKey::find_own(const Owner& owner) {
  for (ModelHold& hold : holds) {
    if (owner.may_ask_again && hold.owner.may_ask_again && hold.owner == owner) return &hold;
  }
  return nullptr;
}

ModelPlace* LockModel::ModelKey::find_place(const Owner& owner) {
  for (ModelPlace& place : queue) {
    const bool is_match = place.owner.may_ask_again && place.owner == owner;
    if (owner.is_secret && owner.may_ask_again && is_match) return &place;
  }
  return nullptr;
}

std::uint64_t LockModel::ModelKey::permits_in_use() const {
  std::uint64_t permits = 0;
  for (const ModelHold& hold : holds) permits += hold.permits;
  return permits;
}

bool LockModel::ModelKey::has_room(Mode mode, std::uint32_t permits) const {
  if (kind == Kind::semaphore) return permits_in_use() + permits <= limit;
  const auto shares = [](const ModelHold& hold) { return hold.mode == Mode::shared; };
  return holds.empty() || (mode == Mode::shared && std::ranges::all_of(holds, shares));
}

// The fence that the table granted in this call, or 0 if there is none.
Fence LockModel::next_fence(Kind kind, std::string_view name) const {
  const ModelKey* key = find(kind, name);
  for (const Event& event : seen_->events) {
    if (event.type != Event::Type::granted || event.kind != kind || event.key != name) continue;
    if (key == nullptr || event.fence > key->last_fence) return event.fence;
  }
  return 0;
}

// Counts all grants of the call, because the rules leave open which key gets the last fence.
bool LockModel::is_exhausted(Kind kind, std::string_view name) const {
  Fence last = last_fence_;
  for (const Event& event : seen_->events) {
    if (event.type == Event::Type::granted) last = std::max(last, event.fence);
  }
  return last >= kFenceMax && next_fence(kind, name) == 0;
}

ModelHold& LockModel::grant(ModelKey& key, const ModelPlace& asked) {
  const Fence fence = next_fence(key.kind, key.name);
  last_fence_ = std::max(last_fence_, fence);
  key.last_fence = std::max(key.last_fence, fence);
  key.holds.push_back({.owner = asked.owner,
                       .client = asked.client,
                       .session = asked.session,
                       .mode = asked.mode,
                       .permits = asked.permits,
                       .fence = fence,
                       .ttl = asked.ttl,
                       .deadline = now_ + asked.ttl,
                       .since = now_});
  earliest_ = std::min(earliest_, now_ + asked.ttl);
  events_.emplace_back(Event{.type = Event::Type::granted,
                             .kind = key.kind,
                             .limit = key.limit,
                             .first_limit = key.first_limit,
                             .key = key.name,
                             .holder = asked.owner.view(),
                             .client = asked.client,
                             .mode = asked.mode,
                             .permits = asked.permits,
                             .fence = fence,
                             .ttl = asked.ttl,
                             .expires_at = now_ + asked.ttl});
  return key.holds.back();
}

Grant LockModel::grant_again(const ModelKey& key, ModelHold& hold, Duration ttl) {
  const Duration remains = hold.deadline - now_;
  hold.ttl = std::max(hold.ttl, capped(ttl));
  Grant grant = refresh(key, hold, std::max(capped(hold.ttl), remains));
  if (grant.ttl > hold.deadline - now_) grant.ttl = hold.deadline - now_;
  return grant;
}

Grant LockModel::refresh(const ModelKey& key, ModelHold& hold, Duration ttl) {
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

// The caller must call grant_next() afterwards.
void LockModel::end_hold(ModelKey& key, Fence fence, EndCause cause) {
  const auto hold = std::ranges::find(key.holds, fence, &ModelHold::fence);
  const bool lapses = cause == EndCause::expired || cause == EndCause::revoked;
  if (hold->two_phase && lapses) key.lapsed.push_back(hold->session);
  key.holds.erase(hold);
  events_.emplace_back(Event{.type = Event::Type::ended,
                             .kind = key.kind,
                             .cause = cause,
                             .key = key.name,
                             .fence = fence});
}

void LockModel::grant_next(ModelKey& key) {
  const auto can_grant = [&](const ModelPlace& first) {
    return !first.of_set && key.has_room(first.mode, first.permits);
  };
  while (!key.queue.empty() && can_grant(key.queue[0])) grant_waiters(key);
  if (!key.idle()) return;
  key.idle_since = now_;
  if (key.first_limit != 0) key.limit = std::exchange(key.first_limit, 0);
}

// Whether the table has granted the key to the front of the queue, or tried to.
bool LockModel::is_front_granted(const ModelKey& key) const {
  if (key.queue.empty()) return false;
  const std::size_t turn = turn_of(key.queue.front());
  if (turn < seen_->wait_results.size()) {
    const Outcome outcome = seen_->wait_results[turn].outcome;
    return outcome == Outcome::ok || outcome == Outcome::fences_exhausted;
  }
  return key.queue.front().listener == nullptr && next_fence(key.kind, key.name) != 0;
}

void LockModel::grant_next_if_set_left(ModelKey& key) {
  if (std::exchange(key.set_left, false)) grant_next(key);
}

// Grants to the front of the queue. The other places of its owner get the same grant, or end if
// they want another mode or number of permits.
void LockModel::grant_waiters(ModelKey& key) {
  const ModelPlace first = key.queue.front();
  if (is_exhausted(key.kind, key.name)) return settle(key, 0, Outcome::fences_exhausted);
  ModelHold& hold = grant(key, first);
  hold.two_phase = hold.unacknowledged = first.two_phase && first.listener == nullptr;
  settle(key, 0, Outcome::ok, hold.grant());
  grant_same_owner(key, hold);
}

// Skips the places of sets, which settle_sets() handles.
void LockModel::grant_same_owner(ModelKey& key, ModelHold& hold) {
  for (std::size_t i = key.queue.size(); i-- > 0;) {
    const ModelPlace& other = key.queue[i];
    if (hold.owner.is_secret || other.owner != hold.owner || other.of_set) continue;
    const Outcome no = compare_request(hold.mode, hold.permits, other.mode, other.permits);
    hold.renewed = hold.renewed || no == Outcome::ok;
    settle(key, i, no, no == Outcome::ok ? hold.grant() : Grant{});
  }
}

// Queues.

bool LockModel::is_full(const ModelKey& key) const {
  return options_.waiters_max != 0 && key.queue.size() >= options_.waiters_max;
}

// ok if a request that cannot be granted at once gets a place; otherwise the refusal.
Outcome LockModel::why_no_place(bool is_full_somewhere, Duration wait) const {
  if (wait > Duration(0)) return is_full_somewhere ? Outcome::max_waiters : Outcome::ok;
  const bool reports_full = is_full_somewhere && options_.refuses_tries_at_full_queue;
  return reports_full ? Outcome::max_waiters : Outcome::held;
}

// ok if this holder may have one more hold or place; otherwise the refusal.
Outcome LockModel::why_no_more(const Holder& holder) const {
  const bool has_client = !holder.is_secret() || holder.session_id() != 0;
  const std::uint32_t client_max = holds_.holds_per_client_max;
  if (has_client && client_max != 0 && count_holds(holder) >= client_max) {
    return Outcome::max_client_holds;
  }
  if (holds_.holds_max != 0 && count_holds() >= holds_.holds_max) return Outcome::max_holds;
  return Outcome::ok;
}

std::size_t LockModel::count_holds() const {
  std::size_t count = 0;
  for (const ModelKey& key : keys_) count += key.holds.size() + key.queue.size();
  return count;
}

std::size_t LockModel::count_holds(const Holder& holder) const {
  const auto is_match = [&](const auto& item) {
    if (holder.is_secret()) return item.session == holder.session_id();
    return item.owner == Owner(holder);
  };
  std::ptrdiff_t count = 0;
  for (const ModelKey& key : keys_) {
    count +=
        std::ranges::count_if(key.holds, is_match) + std::ranges::count_if(key.queue, is_match);
  }
  return static_cast<std::size_t>(count);
}

Duration LockModel::capped(Duration ttl) const {
  return options_.ttl_max == Duration(0) ? ttl : std::min(ttl, options_.ttl_max);
}

ModelPlace LockModel::place_of(const KeyRequest& request) const {
  return {.owner = Owner(request.holder),
          .client = client_of(request),
          .session = request.holder.session_id(),
          .mode = request.mode,
          .permits = request.permits,
          .ttl = capped(request.ttl),
          .since = now_};
}

void LockModel::await(ModelPlace& place, Duration wait, Listener* listener, std::uint64_t id) {
  place.listener = listener;
  place.id = id;
  place.deadline = now_ + wait;
  earliest_ = std::min(earliest_, place.deadline);
}

// The places behind it may fit now.
void LockModel::leave_queue(ModelKey& key, std::size_t at, Outcome why) {
  if (key.queue[at].of_set) return end_set(key.queue[at].id, why);
  settle(key, at, why);
  grant_next(key);
}

// Erases the place and settles its wait, if any.
void LockModel::settle(ModelKey& key, std::size_t at, Outcome outcome, const Grant& grant) {
  const ModelPlace place = key.queue[at];
  key.queue.erase(key.queue.begin() + static_cast<std::ptrdiff_t>(at));
  if (place.listener == nullptr) return;
  settled_.push_back({place.listener, place.id, outcome, grant, now_ - place.since});
}

// Several keys in one step.

ModelReply LockModel::acquire_set(Time now, const AcquireRequest& request, Listener* listener,
                                  std::uint64_t id, Fence last,
                                  std::vector<std::size_t>* in_the_way) {
  const Owner owner(request.holder);
  const std::vector<ModelKey*> keys = at_all(now, request.keys);
  std::set<Fence> own;
  const bool has_all = std::ranges::all_of(keys, [&](ModelKey* key) {
    const ModelHold* const hold = key == nullptr ? nullptr : key->find_own(owner);
    if (hold != nullptr) own.insert(hold->fence);
    return hold != nullptr;
  });
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const KeyItem& item = request.keys[i];
    const ModelHold* const hold = keys[i] == nullptr ? nullptr : keys[i]->find_own(owner);
    const bool is_as_asked =
        hold != nullptr && has_all && own.size() == 1 &&
        compare_request(hold->mode, hold->permits, item.mode, item.permits) == Outcome::ok;
    const bool is_free = hold == nullptr && may_enter(keys[i], item);
    const bool is_good = fits_limit(keys[i], item, owner) && (is_as_asked || is_free);
    if (!is_good) in_the_way->push_back(i);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!fits_limit(keys[i], request.keys[i], owner)) return {Outcome::limit_mismatch};
  }
  if (const std::optional<ModelReply> again = grant_set_again(keys, request)) return *again;
  if (Outcome no = why_not_all(keys, request); no != Outcome::ok) return {no};
  const bool enters = in_the_way->empty();
  make_keys(request, enters ? 0 : last);
  join_all(request, listener, id);
  if (!enters) {
    earliest_ = std::min(earliest_, now_ + request.wait);
    return {Outcome::queued};
  }
  // The queues were empty, and everything fits.
  const std::vector<WaitResult> before = settled_;
  grant_set(id);
  const ModelReply answer{Outcome::ok, settled_.back().grant};
  settled_ = before;
  return answer;
}

std::vector<ModelKey*> LockModel::at_all(Time now, const KeyItems& items) {
  std::vector<ModelKey*> keys;
  for (const KeyItem& item : items) keys.push_back(at(now, item.kind, item.key));
  return keys;
}

// An idle key accepts any limit, unless an option makes it keep its own.
bool LockModel::has_binding_limit(const ModelKey& key) const {
  return !key.idle() || options_.keeps_idle_limits;
}

bool LockModel::fits_limit(const ModelKey* key, const KeyItem& item, const Owner& owner) const {
  if (key == nullptr || !has_binding_limit(*key)) return true;
  const auto is_match = [&](const ModelHold& hold) { return hold.owner == owner; };
  return key->matches(item.limit) &&
         (item.permits <= key->limit || std::ranges::any_of(key->holds, is_match));
}

bool LockModel::may_enter(const ModelKey* key, const KeyItem& item) {
  if (key == nullptr || key->idle()) return true;
  return key->queue.empty() && key->has_room(item.mode, item.permits);
}

// A name that holds all keys under one fence gets that grant; a name that holds some is refused.
std::optional<ModelReply> LockModel::grant_set_again(const std::vector<ModelKey*>& keys,
                                                     const AcquireRequest& request) {
  std::vector<ModelHold*> own;
  for (ModelKey* key : keys) {
    ModelHold* hold = key == nullptr ? nullptr : key->find_own(Owner(request.holder));
    if (hold != nullptr) own.push_back(hold);
  }
  if (own.empty()) return {};
  const auto is_one = [&](const ModelHold* hold) { return hold->fence == own.front()->fence; };
  if (own.size() < keys.size() || !std::ranges::all_of(own, is_one))
    return ModelReply{Outcome::held};
  for (std::size_t i = 0; i < own.size(); ++i) {
    const KeyItem& item = request.keys[i];
    const Outcome no = compare_request(own[i]->mode, own[i]->permits, item.mode, item.permits);
    if (no != Outcome::ok) return ModelReply{no};
  }
  Grant grant = own.front()->grant();
  grant.ttl = Duration::max();
  grant.expires_at = Time::never();
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Grant part = grant_again(*keys[i], *own[i], request.ttl);
    grant.ttl = std::min(grant.ttl, part.ttl);
    grant.expires_at = std::min(grant.expires_at, part.expires_at);
  }
  return ModelReply{Outcome::ok, grant};
}

// ok if the request gets holds or places; otherwise the refusal.
Outcome LockModel::why_not_all(const std::vector<ModelKey*>& keys,
                               const AcquireRequest& request) const {
  bool enters = true;
  bool is_full_somewhere = false;
  std::size_t made = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    enters = enters && may_enter(keys[i], request.keys[i]);
    is_full_somewhere = is_full_somewhere || (keys[i] != nullptr && is_full(*keys[i]));
    made += keys[i] == nullptr;
  }
  const Outcome full = enters ? Outcome::ok : why_no_place(is_full_somewhere, request.wait);
  if (full != Outcome::ok) return full;
  const KeyItem& first = request.keys.front();
  if (enters && is_exhausted(first.kind, first.key)) return Outcome::fences_exhausted;
  if (made > 0 && keys_.size() + made > keys_max_) return Outcome::max_keys;
  const std::size_t client_count = count_holds(request.holder);
  for (std::size_t more = 0; more < keys.size(); ++more) {
    const std::uint32_t client_max = holds_.holds_per_client_max;
    if (client_max != 0 && client_count + more >= client_max) return Outcome::max_client_holds;
    if (holds_.holds_max != 0 && count_holds() + more >= holds_.holds_max) {
      return Outcome::max_holds;
    }
  }
  return Outcome::ok;
}

// A forgotten key of this name had no fence larger than `last`.
void LockModel::make_keys(const AcquireRequest& request, Fence last) {
  for (const KeyItem& item : request.keys) {
    ModelKey* key = find_key(item.kind, item.key);
    if (key == nullptr) {
      key = &keys_.emplace_back(ModelKey{.kind = item.kind, .name = std::string(item.key)});
      key->last_fence = last;
    }
    if (key->idle()) key->limit = item.limit;
  }
}

void LockModel::join_all(const AcquireRequest& request, Listener* listener, std::uint64_t id) {
  for (std::size_t i = 0; i < request.keys.size(); ++i) {
    const KeyItem& item = request.keys[i];
    ModelPlace place = place_of(request_for(item, request));
    place.of_set = true;
    place.part = i;
    place.listener = listener;
    place.id = id;
    place.deadline = now_ + request.wait;
    find_key(item.kind, item.key)->queue.push_back(place);
  }
}

// The queues and indexes of a set's places, in the order of its parts.
std::vector<std::pair<ModelKey*, std::size_t>> LockModel::places_of(std::uint64_t id) {
  std::vector<std::pair<ModelKey*, std::size_t>> places;
  for (ModelKey& key : keys_) {
    for (std::size_t i = 0; i < key.queue.size(); ++i) {
      if (key.queue[i].of_set && key.queue[i].id == id) places.emplace_back(&key, i);
    }
  }
  std::ranges::sort(places, {}, [](const auto& p) { return p.first->queue[p.second].part; });
  return places;
}

// Settles sets in the table's order: if several sets return one grant, the last sets its lease.
void LockModel::settle_sets(Time now) {
  follow(now);
  for (ModelKey& key : keys_) grant_next_if_set_left(key);
  for (bool has_changed = true; std::exchange(has_changed, false);) {
    std::set<std::pair<std::size_t, std::uint64_t>> turns;
    for (const ModelKey& key : keys_) {
      for (const ModelPlace& place : key.queue) {
        if (place.of_set) turns.emplace(turn_of(place), place.id);
      }
    }
    for (const auto& [turn, id] : turns) {
      if (!settle_set(id)) continue;
      has_changed = true;
      for (ModelKey& key : keys_) grant_next_if_set_left(key);
    }
  }
}

// Grants or ends a waiting set. False if it still waits.
bool LockModel::settle_set(std::uint64_t id) {
  const auto places = places_of(id);
  if (places.empty()) return false;
  std::vector<ModelKey*> keys;
  std::vector<KeyItem> items;
  const ModelPlace first = places[0].first->queue[places[0].second];
  bool has_turn = true;
  for (const auto& [key, at] : places) {
    const ModelPlace& place = key->queue[at];
    keys.push_back(key);
    items.emplace_back(key->name, key->kind, place.mode, key->limit, place.permits);
    has_turn = has_turn && at == 0 && key->has_room(place.mode, place.permits);
  }
  const AcquireRequest asked{.keys = items, .holder = first.owner.view(), .ttl = first.ttl};
  if (const std::optional<ModelReply> again = grant_set_again(keys, asked)) {
    end_set(id, again->outcome, again->grant);
    return true;
  }
  if (!has_turn) return false;
  if (is_exhausted(keys[0]->kind, keys[0]->name)) {
    end_set(id, Outcome::fences_exhausted);
  } else {
    grant_set(id);
  }
  return true;
}

// Grants all parts before any place behind them.
void LockModel::grant_set(std::uint64_t id) {
  const auto places = places_of(id);
  std::set<Fence> fences;
  Grant first_grant;
  for (const auto& [key, at] : places) {
    const ModelHold& hold = grant(*key, key->queue[at]);
    fences.insert(hold.fence);
    if (key->queue[at].part == 0) first_grant = hold.grant();
  }
  if (fences.size() != 1) broken_ = "all-or-none: granted in one step under several fences";
  const ModelPlace first = places[0].first->queue[places[0].second];
  settled_.push_back({first.listener, first.id, Outcome::ok, first_grant, now_ - first.since});
  for (const auto& [key, at] : places) key->queue.erase(key->queue.begin() + std::ptrdiff_t(at));
  for (const auto& [key, at] : places) {
    grant_same_owner(*key, key->holds.back());
    grant_next(*key);
  }
}

// Ends all places at once. The places behind them are granted at the end of the call, or when the
// call reaches their key.
void LockModel::end_set(std::uint64_t id, Outcome why, const Grant& grant) {
  const auto places = places_of(id);
  const ModelPlace first = places[0].first->queue[places[0].second];
  settled_.push_back({first.listener, first.id, why, grant, now_ - first.since});
  for (const auto& [key, at] : places) {
    key->queue.erase(key->queue.begin() + std::ptrdiff_t(at));
    key->set_left = true;
  }
}

// The hold of `set` in each key, or null.
std::vector<ModelHold*> LockModel::holds_of(const HoldId& set,
                                            const std::vector<ModelKey*>& keys) const {
  std::vector<ModelHold*> holds;
  for (ModelKey* key : keys) {
    ModelHold* hold = key == nullptr ? nullptr : find_hold(*key, set.fence);
    const bool is_match = hold != nullptr && hold->owner == Owner(set.holder);
    holds.push_back(is_match ? hold : nullptr);
  }
  return holds;
}

ModelReply LockModel::renew_set(Time now, const HoldId& set, std::optional<Duration> ttl) {
  const std::vector<ModelKey*> keys = at_all(now, set.keys);
  const std::vector<ModelHold*> holds = holds_of(set, keys);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (holds[i] != nullptr) continue;
    return {why_not(keys[i], hold_for(set.keys[i], set))};
  }
  Grant grant = holds.front()->grant();
  grant.expires_at = Time::never();
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const Grant part = refresh(*keys[i], *holds[i], capped(ttl.value_or(holds[i]->ttl)));
    grant.expires_at = std::min(grant.expires_at, part.expires_at);
  }
  grant.ttl = grant.expires_at - now_;
  return {Outcome::ok, grant};
}

// Ends all holds before it grants any key to the next waiter.
std::vector<bool> LockModel::release_set(Time now, const HoldId& set) {
  const std::vector<ModelKey*> keys = at_all(now, set.keys);
  std::vector<bool> released;
  for (const ModelHold* hold : holds_of(set, keys)) released.push_back(hold != nullptr);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (released[i]) end_hold(*keys[i], set.fence, EndCause::released);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (released[i]) grant_next(*keys[i]);
  }
  return released;
}

bool LockModel::withdraw_set(Time now, const HoldId& set) {
  const std::vector<ModelKey*> keys = at_all(now, set.keys);
  for (const ModelHold* hold : holds_of(set, keys)) {
    if (hold == nullptr || hold->renewed) return false;
  }
  for (ModelKey* key : keys) end_hold(*key, set.fence, EndCause::disconnected);
  for (ModelKey* key : keys) grant_next(*key);
  return true;
}

// The model's own types.

LockModel::Owner::Owner(const Holder& holder)
    : is_secret(holder.is_secret()),
      may_ask_again(holder.may_ask_again()),
      name(holder.name()),
      secret(holder.secret()),
      session(holder.session_id()) {}

std::string LockModel::Owner::display_name() const {
  return is_secret ? "tcp:" + std::to_string(session) : name;
}

LockModel::OwnedEvent::OwnedEvent(const Event& event)
    : type(event.type), kind(event.kind), key(event.key), fence(event.fence) {
  if (type == Event::Type::ended) {
    cause = event.cause;
    return;
  }
  ttl = event.ttl;
  expires_at = event.expires_at;
  if (type == Event::Type::granted || type == Event::Type::resized) limit = event.limit;
  if (type == Event::Type::granted) {
    owner = Owner(event.holder);
    client = {std::string(event.client.name), std::string(event.client.peer),
              std::string(event.client.note)};
    first_limit = event.first_limit;
    mode = event.mode;
    permits = event.permits;
  }
}

}  // namespace lockd
