#include "core/lock_table.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text.h"

namespace lockd {
namespace {

// Checks only the sizes: the texts were validated when the client identified itself.
Outcome check_client(const ClientView& client) {
  const bool fits = client.name.size() <= kHolderSizeMax && client.peer.size() <= kPeerSizeMax &&
                    client.note.size() <= kNoteSizeMax;
  return fits ? Outcome::ok : Outcome::invalid_note;
}

}  // namespace

Outcome LockTable::check_request(const KeyRequest& request) {
  const Holder& holder = request.holder;
  if (const Session* session = holder.session(); session != nullptr && session->client != nullptr) {
    if (Outcome bad = check_client(*session->client); bad != Outcome::ok) return bad;
  }
  if (!holder.is_secret() && !is_name(holder.name())) return Outcome::invalid_holder;
  if (holder.session_id() > kSessionIdMax) return Outcome::invalid_holder;
  if (request.ttl <= Duration::zero()) return Outcome::invalid_ttl;
  const std::uint32_t limit_max = request.kind == Kind::lock ? 1 : kLimitMax;
  if (request.limit < 1 || request.limit > limit_max) return Outcome::invalid_limit;
  if (request.kind == Kind::semaphore && request.mode != Mode::exclusive) {
    return Outcome::invalid_mode;
  }
  if (request.permits < 1 || request.permits > request.limit) return Outcome::invalid_permits;
  const bool is_text =
      is_plain_text(request.note, kNoteSizeMax) && is_plain_text(request.peer, kPeerSizeMax);
  return is_text ? Outcome::ok : Outcome::invalid_note;
}

// Acquiring and waiting.

LockTable::Reply LockTable::acquire(At at, const KeyRequest& request, Listener* listener,
                                    std::uint64_t id, KeyUnit spare,
                                    std::vector<Conflict>* conflicts) noexcept {
  if (Outcome bad = check_request(request); bad != Outcome::ok) return {bad};
  if (request.wait < Duration::zero()) return {Outcome::invalid_wait};

  Key* key = state_.find(at, request.kind, request.key);
  if (key != nullptr && state_.limits().has_binding_limit(*key)) {
    Hold* own = state_.find_own(*key, request.holder);
    QueuePlace* place = state_.find_place(*key, request.holder);
    if (Outcome no = check_repeated(*key, request, own, place); no != Outcome::ok) {
      if (conflicts != nullptr) conflicts->push_back(state_.explain(*key));
      return {no};
    }
    if (own != nullptr) {
      state_.take_over(*own, request.holder);
      return grant_again(*own, request.ttl);
    }
    if (place != nullptr) return resume_wait(*place, request, listener, id);
    if (!key->may_enter(takes_of(request))) {
      if (Outcome no = queue_refusal(*key, request, listener); no != Outcome::ok) {
        if (conflicts != nullptr) conflicts->push_back(state_.explain(*key));
        return {no};
      }
      QueuePlace& joined = state_.join(*key, request, std::make_unique<QueuePlace>());
      state_.start_wait(joined, request.wait, listener, id);
      return {Outcome::queued, {}, joined.slot};
    }
  }
  Hold* hold = nullptr;
  const Outcome outcome = grant_now(key, request, std::move(spare), &hold);
  return outcome == Outcome::ok ? Reply{outcome, TableState::grant_of(*hold)} : Reply{outcome};
}

// Why the request gets no place in the queue; or ok, and a unit for the place.
Outcome LockTable::queue_refusal(const Key& key, const KeyRequest& request,
                                 const Listener* listener) {
  const bool is_try = request.wait == Duration::zero();
  if (!is_try && listener == nullptr) return Outcome::held;  // not counted: the caller asks again
  if (state_.limits().is_refused_by_queue(key, request.wait)) {
    return state_.limits().refuse(request, &key, Outcome::max_waiters, now());
  }
  if (is_try) return state_.stats().refused(Outcome::held);
  return state_.limits().admit(request, &key, now());
}

LockTable::Reply LockTable::enqueue(At at, const KeyRequest& request, KeyUnit spare) noexcept {
  if (Outcome bad = check_request(request); bad != Outcome::ok) return {bad};
  const SessionId session = request.holder.session_id();
  if (session == 0) return {Outcome::invalid_holder};

  SessionIndex& sessions = state_.sessions();
  Key* key = state_.find(at, request.kind, request.key);
  Enqueued* lapsed = nullptr;  // of an earlier request; replaced
  if (key != nullptr) {
    if (const std::optional<Reply> again = enqueue_again(*key, request)) return *again;
    lapsed = sessions.find_enqueued(session, key);
    if (lapsed != nullptr && !lapsed->lapsed_peers.linked()) return {Outcome::already_enqueued};
    const std::uint32_t takes = takes_of(request);
    if (state_.limits().has_binding_limit(*key) && !key->matches(request.limit, takes)) {
      return {state_.stats().refused(Outcome::limit_mismatch)};
    }
    if (!key->idle() && !key->may_enter(takes)) {
      if (state_.limits().is_queue_full(*key)) {
        return {state_.limits().refuse(request, key, Outcome::max_waiters, now())};
      }
      if (Outcome no = state_.limits().admit(request, key, now()); no != Outcome::ok) {
        return {no};
      }
      if (lapsed != nullptr) sessions.remove(*lapsed);
      QueuePlace& place = state_.join(*key, request, std::make_unique<QueuePlace>());
      place.two_phase = true;
      sessions.enqueue(session, *key).place = &place;
      return {Outcome::queued, {}, place.slot};
    }
  }
  Hold* hold = nullptr;
  const Outcome outcome = grant_now(key, request, std::move(spare), &hold);
  if (outcome != Outcome::ok) return {outcome};
  hold->two_phase = true;
  if (lapsed != nullptr) sessions.remove(*lapsed);
  sessions.enqueue(session, *hold->key).hold = hold;
  return {Outcome::ok, TableState::grant_of(*hold)};
}

// Grants a key that has room and no queue. `key` is null if the key does not exist yet.
Outcome LockTable::grant_now(Key* key, const KeyRequest& request, KeyUnit spare, Hold** hold) {
  if (!state_.fences().has_next()) return Outcome::fences_exhausted;
  KeyUnit unit;
  if (key == nullptr) {
    if (!is_name(request.key)) return Outcome::invalid_key;
    unit = spare ? std::move(spare) : state_.limits().keys().take();
    if (!unit) return Outcome::max_keys;
  }
  if (Outcome no = state_.limits().admit(request, key, now()); no != Outcome::ok) return no;
  if (key == nullptr) key = &state_.create(request.kind, request.key, std::move(unit));
  if (key->idle()) key->set_limit(request.limit);
  *hold = &state_.grant(*key, request, state_.fences().last + 1);
  return Outcome::ok;
}

LockTable::Reply LockTable::await_turn(At at, SessionId session, Kind kind, std::string_view name,
                                       Duration wait, Listener* listener,
                                       std::uint64_t id) noexcept {
  if (wait < Duration::zero()) return {Outcome::invalid_wait};

  Key* key = state_.find(at, kind, name);
  SessionIndex& sessions = state_.sessions();
  Enqueued* enqueued = key == nullptr ? nullptr : sessions.find_enqueued(session, key);
  if (enqueued == nullptr) return {is_name(name) ? Outcome::not_enqueued : Outcome::invalid_key};
  if (Hold* hold = enqueued->hold) {
    sessions.remove(*enqueued);
    hold->two_phase = false;
    sessions.set_unacknowledged(*hold, false);
    state_.renew(*hold, hold->ttl);
    return {Outcome::ok, TableState::grant_of(*hold)};
  }
  QueuePlace* place = enqueued->place;
  if (place == nullptr) {
    sessions.remove(*enqueued);
    return {Outcome::expired};
  }
  if (place->listener != nullptr) return {Outcome::not_enqueued};  // already awaited
  if (wait == Duration::zero()) {
    state_.leave_queue(*place, Outcome::timeout);
    return {Outcome::timeout};
  }
  state_.start_wait(*place, wait, listener, id);
  return {Outcome::queued, {}, place->slot};
}

bool LockTable::cancel(Time now, std::uint32_t slot, const Listener* listener,
                       std::uint64_t id) noexcept {
  advance(now, TableState::kStepsPerCall);
  const auto find = [&]() -> QueuePlace* {
    QueuePlace* const place = state_.places().find(slot);
    const bool is_it =
        place != nullptr && listener != nullptr && place->listener == listener && place->id == id;
    return is_it ? place : nullptr;
  };
  QueuePlace* place = find();
  if (place == nullptr) return false;
  state_.catch_up(*place->key);
  place = find();
  if (place == nullptr) return false;
  state_.leave_queue(*place, Outcome::cancelled);
  return true;
}

// A holder repeats its request when it has lost its connection and does not know the outcome.

// Whether a request names a limit that the key accepts and, if its holder already has a hold or a
// place here, asks for the same as before.
Outcome LockTable::check_repeated(const Key& key, const KeyRequest& request, const Hold* own,
                                  const QueuePlace* place) {
  const std::uint32_t takes = takes_of(request);
  if (!key.matches(request.limit, own == nullptr ? takes : 0)) {
    return state_.stats().refused(Outcome::limit_mismatch);
  }
  const bool differs =
      (own != nullptr && own->takes != takes) || (place != nullptr && place->takes != takes);
  return differs ? mismatch_of(key.kind) : Outcome::ok;
}

LockTable::Reply LockTable::grant_again(Hold& own, Duration ttl) {
  state_.extend(own, ttl);
  return {Outcome::ok, state_.remaining_grant(own)};
}

LockTable::Reply LockTable::resume_wait(QueuePlace& place, const KeyRequest& request,
                                        Listener* listener, std::uint64_t id) {
  const bool waits = request.wait > Duration::zero();
  if (waits && listener == nullptr) return {Outcome::held};  // the caller asks again, to wait
  if (!state_.take_over(place, request.holder)) return {Outcome::taken_over};
  if (!waits) {
    state_.leave_queue(place, Outcome::timeout);
    return {Outcome::timeout};
  }
  place.ttl = state_.limits().capped(request.ttl);
  state_.start_wait(place, request.wait, listener, id);
  return {Outcome::queued, {}, place.slot};
}

// Empty if the holder has neither a hold nor a place here.
std::optional<LockTable::Reply> LockTable::enqueue_again(Key& key, const KeyRequest& request) {
  Hold* const own = state_.find_own(key, request.holder);
  QueuePlace* const place = state_.find_place(key, request.holder);
  if (own == nullptr && place == nullptr) return {};
  SessionIndex& sessions = state_.sessions();
  const SessionId session = request.holder.session_id();
  Enqueued* const other = sessions.find_enqueued(session, &key);
  if (other != nullptr && !other->lapsed_peers.linked() &&
      (other->hold != own || other->place != place)) {
    return Reply{Outcome::already_enqueued};
  }
  if (Outcome no = check_repeated(key, request, own, place); no != Outcome::ok) return Reply{no};
  const bool is_taken_over = own == nullptr ? state_.take_over(*place, request.holder)
                                            : state_.take_over(*own, request.holder);
  if (is_taken_over) {
    if (Enqueued* lapsed = sessions.find_enqueued(session, &key)) sessions.remove(*lapsed);
    Enqueued& enqueued = sessions.enqueue(session, key);
    enqueued.hold = own;
    enqueued.place = place;
    if (own != nullptr) own->two_phase = true;
    if (place != nullptr) place->two_phase = true;
  }
  if (own != nullptr) return grant_again(*own, request.ttl);
  if (!is_taken_over) return Reply{Outcome::taken_over};
  place->ttl = state_.limits().capped(request.ttl);
  return Reply{Outcome::queued, {}, place->slot};
}

// Renewing and ending.

LockTable::Reply LockTable::renew(At at, const KeyHold& id, std::optional<Duration> ttl) noexcept {
  if (ttl.has_value() && *ttl <= Duration::zero()) return {Outcome::invalid_ttl};

  const Key* key = state_.find(at, id.kind, id.key);
  Hold* hold = state_.find_known(key, id.fence);
  if (hold == nullptr || !hold->holder.equals(id.holder)) return {state_.why_not_held(key, id)};
  state_.renew(*hold, ttl.value_or(hold->ttl));
  Grant grant = TableState::grant_of(*hold);
  grant.ttl = hold->deadline - now();
  return {Outcome::ok, grant};
}

Outcome LockTable::release(At at, const KeyHold& id) noexcept {
  Key* key = state_.find(at, id.kind, id.key);
  Hold* hold = state_.find_known(key, id.fence);
  if (hold == nullptr || !hold->holder.equals(id.holder)) return state_.why_not_held(key, id);
  state_.end_hold(*hold, EndCause::released);
  state_.grant_next(*key);
  return Outcome::ok;
}

bool LockTable::withdraw(At at, const KeyHold& id) noexcept {
  Key* key = state_.find(at, id.kind, id.key);
  Hold* hold = state_.find_known(key, id.fence);
  if (hold == nullptr || hold->renewed || !hold->holder.equals(id.holder)) return false;
  state_.end_hold(*hold, EndCause::disconnected);
  state_.grant_next(*key);
  return true;
}

bool LockTable::is_valid(const AdminNote& note) {
  return is_plain_text(note.reason, kNoteSizeMax) && is_plain_text(note.by, kHolderSizeMax);
}

Outcome LockTable::resize(At at, std::string_view name, std::uint32_t limit,
                          const AdminNote& note) noexcept {
  if (!is_valid(note)) return Outcome::invalid_note;
  if (limit < 1 || limit > kLimitMax) return Outcome::invalid_limit;

  Key* key = state_.find(at, Kind::semaphore, name);
  if (key == nullptr) return is_name(name) ? Outcome::expired : Outcome::invalid_key;
  if (key->idle()) return Outcome::expired;
  key->resize(limit);
  if (state_.options().events) {
    effects().events.push_back({.type = Event::Type::resized,
                                .kind = Kind::semaphore,
                                .limit = limit,
                                .key = key->name()});
  }
  state_.stats().resized(*key, note, now());
  // A place that asks for more than the limit would block the queue for ever.
  for (QueuePlace* place = key->queue.front(); place != nullptr;) {
    QueuePlace* const next = key->queue.next(place);
    if (place->takes > limit) state_.give_up(*place, Outcome::limit_mismatch);
    place = next;
  }
  state_.grant_next(*key);
  return Outcome::ok;
}

// The next hold that an admin ends.
Hold* LockTable::find_revoked(const Key* key, const Revocation& revocation) const {
  if (revocation.fence.has_value()) return state_.find_known(key, *revocation.fence);
  if (key == nullptr || key->holds.empty()) return nullptr;
  Hold* oldest = key->holds.front();
  return oldest->fence <= revocation.last ? oldest : nullptr;
}

Outcome LockTable::why_not(const Key* key, const Revocation& revocation) {
  if (key == nullptr && !is_name(revocation.key)) return Outcome::invalid_key;
  return key == nullptr || key->holds.empty() ? Outcome::expired : Outcome::stale;
}

// Idle keys.

std::size_t LockTable::forget_idle(Time since, std::size_t keys_max) noexcept {
  std::size_t forgotten = 0;
  for (; forgotten < keys_max; ++forgotten) {
    Key* const oldest = state_.idle().oldest();
    if (oldest == nullptr || oldest->first.since > since) break;
    state_.forget(*oldest);
    state_.limits().keys().give_back();
  }
  return forgotten;
}

KeyUnit LockTable::reclaim_idle() noexcept {
  Key* const oldest = state_.idle().oldest();
  if (oldest == nullptr) return {};
  state_.forget(*oldest);
  return state_.limits().keys().take_over();
}

// Reading.

FenceStatus LockTable::fence(At at, std::string_view name) noexcept {
  const Key* key = state_.find(at, Kind::lock, name);
  if (key == nullptr) return {false, last_fence()};
  return {key->holders > 0, key->largest_fence(state_.fences().raised)};
}

bool LockTable::explain(At at, Kind kind, std::string_view name, Conflict* conflict) noexcept {
  const Key* key = state_.find(at, kind, name);
  if (key == nullptr || key->holds.empty()) return false;
  *conflict = state_.explain(*key);
  return true;
}

Stats LockTable::stats() const {
  Stats stats = state_.stats().stats();
  stats.shared_holds = state_.many_holds().shared();
  stats.semaphore_holders = state_.many_holds().size() - stats.shared_holds;
  stats.locks_held = state_.stats().holders() - stats.semaphore_holders;
  stats.keys = keys();
  stats.idle_keys = state_.idle().size();
  return stats;
}

}  // namespace lockd
