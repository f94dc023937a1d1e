#include "core/lock_table.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include "base/text.h"

namespace lockd {
namespace {

// What a call spends at most on the table before it walks through all that a key has.
constexpr std::uint64_t kStepsPerWalkMax = 128 * 1024;

// Of a session's client the sizes are looked at alone: it was looked at when it said so.
Outcome check_client(const ClientView& client) {
  const bool fits = client.name.size() <= kHolderSizeMax && client.peer.size() <= kPeerSizeMax &&
                    client.note.size() <= kNoteSizeMax;
  return fits ? Outcome::ok : Outcome::invalid_note;
}

Outcome check_texts(const AcquireRequest& request) {
  const bool good =
      is_plain_text(request.note, kNoteSizeMax) && is_plain_text(request.peer, kPeerSizeMax);
  return good ? Outcome::ok : Outcome::invalid_note;
}
Outcome check_texts(const EnqueueRequest&) { return Outcome::ok; }

template <typename Request>  // AcquireRequest or EnqueueRequest
Outcome check_form(const Request& request) {
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
  return check_texts(request);
}

// Hands over what the place knows of its client.
KnownClient move_client(QueuePlace& place) {
  return {std::move(place.client), std::exchange(place.client_from, ClientFrom::nowhere)};
}

// One timer of a key that is due. Named, not pointed to: what runs out first can end what follows.
struct Due {
  Time deadline;
  Timer::Kind what;
  Fence fence;
  std::uint32_t slot;
};

// A session says who it is; of a name the request does.
ClientView view_of(const EnqueueRequest& request) {
  const Session* const session = request.holder.session();
  if (session == nullptr || session->client == nullptr) return {};
  return *session->client;
}
ClientView view_of(const AcquireRequest& request) {
  if (!request.holder.is_secret()) return {{}, request.peer, request.note};
  return view_of(EnqueueRequest{request.key, request.holder, {}});
}

}  // namespace

LockTable::LockTable(const TableOptions& options, KeyBudget& budget, HoldBudget* holds)
    : options_(options),
      budget_(budget),
      units_(holds),
      index_(options.hash_key),
      fence_(options.last_fence) {}

LockTable::~LockTable() {
  Cursor cursor;
  std::vector<Key*> all;
  index_.walk(cursor, index_.size() + 1, [&](Key& s) { all.push_back(&s); });
  for (Key* s : all) {
    while (QueuePlace* place = s->queue.pop_front()) delete place;
    while (Hold* hold = s->holds.pop_front()) {
      if (hold != &s->first) delete hold;
    }
    budget_.give_back();
    delete s;
  }
}

// Taking and waiting.

Outcome LockTable::check_request(const AcquireRequest& request) { return check_form(request); }

// Who asks holds it, or waits for it, but not as it asks now.
Outcome LockTable::mismatch(Kind kind) {
  return kind == Kind::lock ? Outcome::mode_mismatch : Outcome::permits_mismatch;
}

LockTable::Reply LockTable::acquire(At at, const AcquireRequest& request, Listener* listener,
                                    std::uint64_t id, KeyUnit spare, Conflict* conflict) noexcept {
  if (Outcome bad = check_request(request); bad != Outcome::ok) return {bad};
  if (request.wait < Duration::zero()) return {Outcome::invalid_wait};

  const std::uint32_t takes = takes_of(request);
  Key* key = find_at(at, request.kind, request.key);
  if (key != nullptr && has_binding_limit(*key)) {
    Hold* own = find_own(*key, request.holder);
    QueuePlace* place = find_place(*key, request.holder);
    if (Outcome no = compare_request(*key, request.limit, takes, own, place); no != Outcome::ok) {
      fill_conflict(*key, conflict);
      return {no};
    }
    if (own != nullptr) {
      take_over(*own, request.holder);
      return grant_again(*own, request.ttl);
    }
    if (place != nullptr) return resume(*place, request, listener, id);
    if (!may_enter(*key, takes)) {
      if (Outcome no = queue_refusal(*key, request, listener); no != Outcome::ok) {
        fill_conflict(*key, conflict);
        return {no};
      }
      QueuePlace& place = join(*key, request);
      place.listener = listener;
      place.id = id;
      arm(place, request.wait);
      return {Outcome::queued, {}, place.slot};
    }
  }
  Hold* hold = nullptr;
  const Outcome taken = take(key, request, std::move(spare), &hold);
  return taken == Outcome::ok ? Reply{taken, grant_of(*hold)} : Reply{taken};
}

// Why a request gets no place in the queue, or ok and a unit for it.
Outcome LockTable::queue_refusal(const Key& key, const AcquireRequest& request,
                                 const Listener* listener) {
  const bool is_try = request.wait == Duration::zero();
  if (!is_try && listener == nullptr) return Outcome::held;  // not counted: it will ask again
  if (is_refused_by_queue(key, request.wait)) {
    return refuse(request, &key, Outcome::max_waiters);
  }
  if (is_try) return stats_.refused(Outcome::held);
  return admit(request, &key);
}

LockTable::Reply LockTable::enqueue(At at, const EnqueueRequest& request, KeyUnit spare) noexcept {
  if (Outcome bad = check_form(request); bad != Outcome::ok) return {bad};
  const SessionId session = request.holder.session_id();
  if (session == 0) return {Outcome::invalid_holder};

  Key* key = find_at(at, request.kind, request.key);
  Enqueued* lapsed = nullptr;  // an earlier one, which is in nobody's way
  if (key != nullptr) {
    if (const std::optional<Reply> again = enqueue_again(*key, request)) return *again;
    lapsed = enqueued_.find(session, key);
    if (lapsed != nullptr && !lapsed->lapsed_peers.linked()) return {Outcome::already_enqueued};
    const bool is_bound = has_binding_limit(*key);
    if (is_bound && !matches(*key, request.limit, takes_of(request))) {
      return {stats_.refused(Outcome::limit_mismatch)};
    }
    if (!key->idle() && !may_enter(*key, takes_of(request))) {
      if (queue_is_full(*key)) return {refuse(request, key, Outcome::max_waiters)};
      if (Outcome no = admit(request, key); no != Outcome::ok) return {no};
      if (lapsed != nullptr) drop(*lapsed);
      QueuePlace& place = join(*key, request);
      place.two_phase = true;
      begin_two_phase(session, *key).place = &place;
      return {Outcome::queued, {}, place.slot};
    }
  }
  Hold* hold = nullptr;
  const Outcome taken = take(key, request, std::move(spare), &hold);
  if (taken != Outcome::ok) return {taken};
  hold->two_phase = true;
  if (lapsed != nullptr) drop(*lapsed);
  begin_two_phase(session, *hold->key).hold = hold;
  return {Outcome::ok, grant_of(*hold)};
}

// Takes what has room: a key that is idle, or nobody waits for, or is not there yet.
template <typename Request>
Outcome LockTable::take(Key* key, const Request& request, KeyUnit spare, Hold** hold) {
  if (fence_ >= kFenceMax) return Outcome::fences_exhausted;
  KeyUnit unit;
  if (key == nullptr) {
    if (!is_name(request.key)) return Outcome::invalid_key;  // those there have been looked at
    unit = spare ? std::move(spare) : budget_.take();
    if (!unit) return Outcome::max_keys;
  }
  if (Outcome no = admit(request, key); no != Outcome::ok) return no;
  StoredHolder holder(request.holder);
  if (key == nullptr) key = &create(request.kind, request.key, std::move(unit));
  if (key->idle()) key->limit = request.limit;
  *hold = &grant(*key, std::move(holder), client_of(request), takes_of(request),
                 capped(request.ttl), fence_ + 1);
  stats_.granted_at_once(**hold, now_);
  return Outcome::ok;
}

LockTable::Reply LockTable::await_turn(At at, SessionId session, Kind kind, std::string_view name,
                                       Duration wait, Listener* listener,
                                       std::uint64_t id) noexcept {
  if (wait < Duration::zero()) return {Outcome::invalid_wait};

  Key* key = find_at(at, kind, name);
  Enqueued* enqueued = key == nullptr ? nullptr : enqueued_.find(session, key);
  if (enqueued == nullptr) return {is_name(name) ? Outcome::not_enqueued : Outcome::invalid_key};
  if (Hold* hold = enqueued->hold) {
    drop(*enqueued);
    hold->two_phase = false;
    mark(*hold, /*unacknowledged=*/false);
    refresh(*hold, hold->ttl);
    return {Outcome::ok, grant_of(*hold)};
  }
  QueuePlace* place = enqueued->place;
  if (place == nullptr) {
    drop(*enqueued);
    return {Outcome::expired};
  }
  if (place->listener != nullptr) return {Outcome::not_enqueued};  // somebody awaits it already
  if (wait == Duration::zero()) {
    leave_queue(*place, Outcome::timeout);
    return {Outcome::timeout};
  }
  place->listener = listener;
  place->id = id;
  arm(*place, wait);
  return {Outcome::queued, {}, place->slot};
}

bool LockTable::cancel(Time now, std::uint32_t slot, const Listener* listener,
                       std::uint64_t id) noexcept {
  advance(now, kStepsPerCall);
  QueuePlace* place = slots_.find(slot);
  if (place == nullptr || listener == nullptr) return false;  // a place that nobody awaits has none
  if (place->listener != listener || place->id != id) return false;
  if (behind_) {
    catch_up(*place->key);
    place = slots_.find(slot);
    if (place == nullptr) return false;
  }
  leave_queue(*place, Outcome::cancelled);
  return true;
}

// Renewing and ending.

LockTable::Reply LockTable::renew(At at, const HoldId& id, std::optional<Duration> ttl) noexcept {
  if (ttl.has_value() && *ttl <= Duration::zero()) return {Outcome::invalid_ttl};

  const Key* key = find_at(at, id.kind, id.key);
  Hold* hold = find_known(key, id.fence);
  if (hold == nullptr || !hold->holder.equals(id.holder)) return {why_not(key, id)};
  refresh(*hold, ttl.value_or(hold->ttl));
  Grant grant = grant_of(*hold);
  grant.ttl = hold->deadline - now_;
  return {Outcome::ok, grant};
}

Outcome LockTable::release(At at, const HoldId& id) noexcept {
  Key* key = find_at(at, id.kind, id.key);
  Hold* hold = find_known(key, id.fence);
  if (hold == nullptr || !hold->holder.equals(id.holder)) return why_not(key, id);
  end_hold(*hold, EndCause::released);
  grant_next(*key);
  return Outcome::ok;
}

bool LockTable::is_good(const AdminNote& note) {
  return is_plain_text(note.reason, kNoteSizeMax) && is_plain_text(note.by, kHolderSizeMax);
}

Outcome LockTable::resize(At at, std::string_view name, std::uint32_t limit,
                          const AdminNote& note) noexcept {
  if (!is_good(note)) return Outcome::invalid_note;
  if (limit < 1 || limit > kLimitMax) return Outcome::invalid_limit;

  Key* key = find_at(at, Kind::semaphore, name);
  if (key == nullptr) return is_name(name) ? Outcome::expired : Outcome::invalid_key;
  if (key->idle()) return Outcome::expired;
  set_limit(*key, limit);
  if (options_.events) {
    effects_.events.push_back({.type = Event::Type::resized,
                               .kind = Kind::semaphore,
                               .limit = limit,
                               .key = key->name()});
  }
  stats_.resized(*key, note, now_);
  end_oversized(*key);
  grant_next(*key);
  return Outcome::ok;
}

bool LockTable::withdraw(At at, const HoldId& id) noexcept {
  Key* key = find_at(at, id.kind, id.key);
  Hold* hold = find_known(key, id.fence);
  if (hold == nullptr || hold->renewed || !hold->holder.equals(id.holder)) return false;
  end_hold(*hold, EndCause::disconnected);
  grant_next(*key);
  return true;
}

Outcome LockTable::why_not(const Key* key, const HoldId& id) const {
  if (key == nullptr) return is_name(id.key) ? Outcome::expired : Outcome::invalid_key;
  if (key->holds.empty()) return Outcome::expired;
  if (find_hold(key, id.fence) != nullptr) return Outcome::not_holder;
  return key->holds.back()->fence > id.fence ? Outcome::stale : Outcome::not_holder;
}

// The next hold that an admin ends.
Hold* LockTable::find_revoked(const Key* key, const Revocation& revocation) const {
  if (revocation.fence.has_value()) return find_known(key, *revocation.fence);
  if (key == nullptr || key->holds.empty()) return nullptr;
  Hold* oldest = key->holds.front();
  return oldest->fence <= revocation.last ? oldest : nullptr;
}

Outcome LockTable::why_not(const Key* key, const Revocation& revocation) {
  if (key == nullptr && !is_name(revocation.key)) return Outcome::invalid_key;
  return key == nullptr || key->holds.empty() ? Outcome::expired : Outcome::stale;
}

// Time.

bool LockTable::advance(Time now, int budget) noexcept {
  now_ = std::max(now_, now);
  while (Timer* timer = timers_.pop_due(now_, &budget)) on_timer(*timer);
  behind_ = budget <= 0;
  if (!behind_ && !quiet_until_.empty()) quiet_until_ = {};
  return !behind_;
}

Key* LockTable::find_at(At at, Kind kind, std::string_view name) {
  known_ = fence_;
  advance(at.now, kStepsPerCall);
  const std::uint64_t hash = at.key_hash.has_value() ? *at.key_hash : index_.hash_of(name);
  Key* key = index_.find(kind, name, hash);
  if (behind_ && key != nullptr) catch_up(*key);
  return key;
}

// Brings one key up to date while the table as a whole is behind. That walks through all that the
// key has, so it is done only when something there may have fallen due, and what it costs is first
// spent on the table: whoever makes it walk again and again makes it get less behind, until it is
// not.
void LockTable::catch_up(Key& key) {
  if (is_quiet(key)) return;
  const std::uint64_t walked = std::uint64_t{key.holders} + key.waiters;
  if (walked > kStepsPerCall) {
    advance(now_, static_cast<int>(std::min(walked / 8, kStepsPerWalkMax)));
  }
  if (behind_) end_due(key);
}

bool LockTable::is_quiet(const Key& key) const {
  const auto known = quiet_until_.find(&key);
  return known != quiet_until_.end() && now_ < known->second;
}

// In the order in which advance() would have come to it.
void LockTable::end_due(Key& key) {
  std::vector<Due> due;
  Time next = Time::never();
  for (const Hold* h = key.holds.front(); h != nullptr; h = key.holds.next(h)) {
    if (h->deadline <= now_) {
      due.push_back({h->deadline, h->what, h->fence, 0});
    } else {
      next = std::min(next, h->deadline);
    }
  }
  for (const QueuePlace* w = key.queue.front(); w != nullptr; w = key.queue.next(w)) {
    if (!w->armed()) continue;
    if (w->deadline <= now_) {
      due.push_back({w->deadline, w->what, 0, w->slot});
    } else {
      next = std::min(next, w->deadline);
    }
  }
  quiet_until_[&key] = next;  // what is armed from here on moves it: see arm()
  std::sort(due.begin(), due.end(), [](const Due& a, const Due& b) {
    return std::pair(a.deadline, a.what) < std::pair(b.deadline, b.what);
  });
  for (const Due& d : due) {
    Timer* timer = nullptr;
    if (d.what == Timer::Kind::lease) {
      timer = find_hold(&key, d.fence);
    } else {
      timer = slots_.find(d.slot);
    }
    if (timer == nullptr || timer->deadline != d.deadline) continue;
    timers_.disarm(*timer);
    on_timer(*timer);
  }
}

void LockTable::on_timer(Timer& timer) {
  if (timer.what == Timer::Kind::wait) {
    leave_queue(static_cast<QueuePlace&>(timer), Outcome::timeout);
    return;
  }
  Hold& hold = static_cast<Hold&>(timer);
  Key& key = *hold.key;
  end_hold(hold, EndCause::expired);
  grant_next(key);
}

void LockTable::arm(Timer& timer, Duration after) {
  timers_.arm(timer, now_ + after);
  effects_.earliest = std::min(effects_.earliest, timer.deadline);
  if (quiet_until_.empty()) return;
  const auto known = quiet_until_.find(&key_of(timer));
  if (known != quiet_until_.end()) known->second = std::min(known->second, timer.deadline);
}

const Key& LockTable::key_of(const Timer& timer) {
  if (timer.what == Timer::Kind::lease) return *static_cast<const Hold&>(timer).key;
  return *static_cast<const QueuePlace&>(timer).key;
}

// The queue of a key.

template <typename Request>
QueuePlace& LockTable::join(Key& key, const Request& request) {
  auto place = std::make_unique<QueuePlace>();
  place->key = &key;
  place->takes = takes_of(request);
  place->ttl = capped(request.ttl);
  place->since = now_;
  place->holder = StoredHolder(request.holder);
  KnownClient client = client_of(request);
  place->client = std::move(client.identity);
  place->client_from = client.from;
  slots_.insert(place.get());
  join_owner(*place);
  if (key.idle()) leave_idle(key);
  key.queue.push_back(place.get());
  ++key.waiters;
  ++stats_.waiters(key.kind);
  stats_.queued(*place);
  return *place.release();
}

// Whether a request that cannot be granted at once is refused because the queue is full.
bool LockTable::is_refused_by_queue(const Key& key, Duration wait) const {
  const bool is_try = wait == Duration::zero();
  return (!is_try || options_.refuses_tries_at_full_queue) && queue_is_full(key);
}

bool LockTable::queue_is_full(const Key& key) const {
  return options_.waiters_max != 0 && key.waiters >= options_.waiters_max;
}

// After a hold has ended, or the first has left the queue: that moves up, or the key is idle.
void LockTable::grant_next(Key& key) {
  if (!key.queue.empty()) grant_waiters(key);
  if (key.idle()) {
    end_resize(key);
    key.first.since = now_;
    idle_.push_back(&key.first);
    ++idle_keys_;
    ++idlings_;
  }
}

// Does nothing to a key that was made just now.
void LockTable::leave_idle(Key& key) {
  if (!key.first.peers.linked()) return;
  idle_.remove(&key.first);
  --idle_keys_;
}

// Whoever is first comes in, as long as there is room for them. A set that has ended counts for
// nothing, though its place may still be here.
void LockTable::grant_waiters(Key& key) {
  while (!key.queue.empty()) {
    QueuePlace& place = *key.queue.front();
    if (is_over(place)) {
      give_up(place, sets_.find(&place)->second.set->outcome);
      continue;
    }
    if (!fits(key, place.takes)) return;
    if (place.of_set) return wake_set(place);
    if (ending_ != 0 && place.holder.session_id() == ending_) {
      give_up(place, Outcome::cancelled);
      continue;
    }
    if (fence_ >= kFenceMax) {
      give_up(place, Outcome::fences_exhausted);
      continue;
    }
    Enqueued* parked = nullptr;
    if (place.two_phase && place.listener == nullptr) {
      parked = enqueued_.find(place.holder.session_id(), &key);
      place.two_phase = false;  // it will be the hold's
    }
    Hold& hold = grant(place, fence_ + 1);
    if (parked != nullptr) {
      parked->place = nullptr;
      parked->hold = &hold;
      hold.two_phase = true;
      mark(hold, /*unacknowledged=*/true);
    }
    settle(place, Outcome::ok, grant_of(hold));
    grant_same_owner(hold);
  }
}

// Nobody waits behind their own hold: the other places of a name that was granted the key have that
// grant, if they ask for the same. It is more than one caller's then, so none of them can withdraw
// it.
void LockTable::grant_same_owner(Hold& hold) {
  if (hold.holder.is_secret()) return;
  for (QueuePlace* other : places_.all(hold.key, hold.holder.view())) {
    if (other->of_set) {
      wake_set(*other);
    } else if (other->takes != hold.takes) {
      give_up(*other, mismatch(hold.key->kind));
    } else {
      hold.renewed = true;
      give_up(*other, Outcome::ok, grant_of(hold));
    }
  }
}

// What becomes of a set is not for one table to say.
void LockTable::wake_set(const QueuePlace& place) {
  effects_.sets.push_back(sets_.find(&place)->second.set);
}

// It is a place of a set that has ended by way of another of its keys.
bool LockTable::is_over(const QueuePlace& place) const {
  return place.of_set && sets_.find(&place)->second.set->is_over();
}

// False if it had ended before. Else its other places have to go, too.
bool LockTable::end_set(const QueuePlace& place, Outcome why) {
  if (!sets_.find(&place)->second.set->end(why)) return false;
  wake_set(place);
  return true;
}

// Whoever was behind the first may fit where that did not.
void LockTable::leave_queue(QueuePlace& place, Outcome why) {
  Key& key = *place.key;
  const QueuePlace* const first = key.queue.front();
  const bool was_first = first == &place || is_over(*first);
  give_up(place, why);
  if (was_first) grant_next(key);
}

// Leaves the queue without a grant of its own.
void LockTable::give_up(QueuePlace& place, Outcome why, const Grant& grant) {
  stats_.gave_up(place, why, now_);
  settle(place, why, grant);
}

// The wait is over: whoever waits is told, and the place is gone.
void LockTable::settle(QueuePlace& place, Outcome outcome, const Grant& grant) {
  if (place.listener != nullptr && (!place.of_set || end_set(place, outcome))) {
    effects_.wait_results.push_back({place.listener, place.id, outcome, grant, now_ - place.since});
  }
  leave(place);
}

void LockTable::leave(QueuePlace& place) {
  Key& key = *place.key;
  if (place.of_set) {
    const auto member = sets_.find(&place);
    member->second.set->parts[member->second.part].place = nullptr;
    sets_.erase(member);
  }
  leave_owner(place);
  timers_.disarm(place);
  key.queue.remove(&place);
  --key.waiters;
  --stats_.waiters(key.kind);
  slots_.remove(&place);
  // What a place that was granted had is the hold's: its unit, its holder and its client.
  if (!place.holder.is_empty()) units_.give_back(place.holder.view());
  clients_.drop(move_client(place));
  delete &place;
}

void LockTable::join_owner(QueuePlace& place) {
  places_.insert(&place);
  const SessionId session = place.holder.session_id();
  if (session == 0) return;
  SessionItems& items = sessions_[session];
  items.waiters.push_back(&place);
  ++items.places;
}

// The place is none of its name's, or its session's, any more.
void LockTable::leave_owner(QueuePlace& place) {
  places_.remove(&place);
  if (!place.session_peers.linked()) return;
  const SessionId session = place.holder.session_id();
  SessionItems& items = sessions_[session];
  items.waiters.remove(&place);
  --items.places;
  if (place.two_phase) drop(*enqueued_.find(session, place.key));
}

Enqueued& LockTable::begin_two_phase(SessionId session, Key& key) {
  Enqueued* enqueued = enqueued_.insert(session, &key);
  sessions_[session].enqueued.push_back(enqueued);
  return *enqueued;
}

void LockTable::drop(Enqueued& enqueued) {
  sessions_[enqueued.session].enqueued.remove(&enqueued);
  enqueued_.remove(&enqueued);
}

// Holds.

Hold& LockTable::grant(Key& key, StoredHolder holder, KnownClient client, std::uint32_t takes,
                       Duration ttl, Fence fence) {
  fence_ = fence;
  Hold& hold = add_hold(key, std::move(holder), takes, fence, ttl);
  clients_.keep(hold, std::move(client));
  arm(hold, ttl);
  if (options_.events) effects_.events.push_back(granted(hold));
  return hold;
}

// To the first of a queue. Its place is still there: it has to leave.
Hold& LockTable::grant(QueuePlace& place, Fence fence) {
  leave_owner(place);
  Hold& hold =
      grant(*place.key, std::move(place.holder), move_client(place), place.takes, place.ttl, fence);
  stats_.granted_from_queue(hold, place, now_);
  return hold;
}

// The ttl of a recovered hold may be longer than ttl_max.
void LockTable::refresh(Hold& hold, Duration ttl) { move_deadline(hold, now_ + capped(ttl)); }

void LockTable::move_deadline(Hold& hold, Time deadline) {
  arm(hold, deadline - now_);
  hold.renewed = true;
  stats_.renewed();
  if (!options_.events) return;
  effects_.events.push_back({.type = Event::Type::renewed,
                             .kind = hold.key->kind,
                             .key = hold.key->name(),
                             .fence = hold.fence,
                             .ttl = hold.ttl,
                             .expires_at = hold.deadline});
}

// Leaves its permits free: grant_next() must follow.
void LockTable::end_hold(Hold& hold, EndCause cause, const AdminNote& note) {
  Key& key = *hold.key;
  stats_.ended(hold, cause, now_, note);
  if (options_.events) {
    effects_.events.push_back({.type = Event::Type::ended,
                               .kind = key.kind,
                               .cause = cause,
                               .key = key.name(),
                               .fence = hold.fence});
  }
  if (hold.two_phase) {
    Enqueued* enqueued = enqueued_.find(hold.holder.session_id(), &key);
    if (cause != EndCause::expired && cause != EndCause::revoked) {
      drop(*enqueued);
    } else if (Enqueued* oldest = enqueued_.lapse(enqueued)) {
      drop(*oldest);
    }
  }
  remove_hold(hold);
}

Hold& LockTable::add_hold(Key& key, StoredHolder holder, std::uint32_t takes, Fence fence,
                          Duration ttl) {
  const bool first_is_free = !key.first.in_use;
  Hold* hold = first_is_free ? &key.first : new Hold(&key);
  if (key.idle()) leave_idle(key);
  hold->in_use = true;
  hold->takes = takes;
  hold->fence = fence;
  hold->ttl = ttl;
  hold->since = now_;
  hold->holder = std::move(holder);
  // Fences rise, so its place is at the end; only a snapshot that is replayed may come behind what
  // was granted while it was written, but then each of a key's holds behind the one before it.
  Hold* after = key.holds.back();
  if (after == nullptr || after->fence < fence) {
    key.holds.push_back(hold);
  } else {
    const Hold* before = replayed_;
    const bool follows = before != nullptr && before->key == &key && before->fence < fence;
    Hold* successor = follows ? key.holds.next(before) : key.holds.front();
    while (successor->fence < fence) successor = key.holds.next(successor);
    key.holds.insert_before(hold, successor);
  }
  ++key.holders;
  if (key.has_several()) count_room(*hold, /*is_taken=*/true);
  if (hold->holder.session_id() != 0) join_session(*hold);
  return *hold;
}

void LockTable::join_session(Hold& hold) {
  const SessionId session = hold.holder.session_id();
  if (session == 0) return;
  SessionItems& items = sessions_[session];
  items.holds.push_back(&hold);
  ++items.held;
  ++items.acknowledged;
}

void LockTable::leave_session(Hold& hold) {
  if (!hold.session_peers.linked()) return;
  SessionItems& items = sessions_[hold.holder.session_id()];
  items.holds.remove(&hold);
  --items.held;
  if (!hold.unacknowledged) --items.acknowledged;
}

void LockTable::mark(Hold& hold, bool unacknowledged) {
  if (hold.unacknowledged == unacknowledged) return;
  hold.unacknowledged = unacknowledged;
  std::size_t& acknowledged = sessions_[hold.holder.session_id()].acknowledged;
  unacknowledged ? --acknowledged : ++acknowledged;
}

void LockTable::remove_hold(Hold& hold) {
  Key& key = *hold.key;
  timers_.disarm(hold);
  if (key.has_several()) count_room(hold, /*is_taken=*/false);
  units_.give_back(owner_of(hold));
  clients_.forget(hold);
  if (hold.session_peers.linked()) leave_session(hold);
  key.holds.remove(&hold);
  if (hold.mode() == Mode::shared) keep_fence(hold);
  if (replayed_ == &hold) replayed_ = nullptr;
  --key.holders;
  if (&hold != &key.first) {
    delete &hold;
    return;
  }
  hold.in_use = hold.two_phase = hold.unacknowledged = hold.renewed = hold.slow = false;
  hold.holder = StoredHolder();
}

// A session that has left the hold to its lease is nobody.
Holder LockTable::owner_of(const Hold& hold) {
  const bool is_left = hold.holder.is_secret() && !hold.session_peers.linked();
  return is_left ? Holder::of_secret(0) : hold.holder.view();
}

// A unit for a hold or a place, or why there is none.
template <typename Request>
Outcome LockTable::admit(const Request& request, const Key* key) {
  const Outcome outcome = units_.take(request.holder);
  return outcome == Outcome::ok ? outcome : refuse(request, key, outcome);
}

// By a cap. Hands the reason back.
template <typename Request>
Outcome LockTable::refuse(const Request& request, const Key* key, Outcome why) {
  record_refusal(request, key, why, now_);
  return stats_.refused(why);
}

template <typename Request>
void LockTable::record_refusal(const Request& request, const Key* key, Outcome why, Time now) {
  stats_.record_refusal({.kind = request.kind,
                         .key = request.key,
                         .holder = request.holder,
                         .client = view_of(request),
                         .limit = request.limit,
                         .takes = takes_of(request),
                         .ttl = request.ttl},
                        key, why, now);
}
template void LockTable::record_refusal(const AcquireRequest&, const Key*, Outcome, Time);
template void LockTable::record_refusal(const EnqueueRequest&, const Key*, Outcome, Time);
// And for SetRules.
template Outcome LockTable::admit(const AcquireRequest&, const Key*);
template Outcome LockTable::refuse(const AcquireRequest&, const Key*, Outcome);
template QueuePlace& LockTable::join(Key&, const AcquireRequest&);

Duration LockTable::capped(Duration ttl) const {
  return options_.ttl_max == Duration::zero() ? ttl : std::min(ttl, options_.ttl_max);
}

// The hold that a caller means.
Hold* LockTable::find_known(const Key* key, Fence fence) const {
  return fence <= known_ ? find_hold(key, fence) : nullptr;
}

Hold* LockTable::find_hold(const Key* key, Fence fence) const {
  if (key == nullptr || key->holds.empty()) return nullptr;
  Hold* hold = key->holds.front();
  if (hold->fence == fence) return hold;
  return key->has_several() ? hold_index_.find(key, fence) : nullptr;
}

Grant LockTable::grant_of(const Hold& hold) {
  return {hold.fence, hold.ttl, hold.deadline, hold.holder.view().secret()};
}

// Who its client says it is. What a name says comes with its request, beside the name itself.
KnownClient LockTable::client_of(const AcquireRequest& request) {
  if (request.holder.is_secret()) return ClientNames::of_session(request.holder.session());
  return clients_.share({{}, request.peer, request.note});
}

KnownClient LockTable::client_of(const EnqueueRequest& request) {
  return ClientNames::of_session(request.holder.session());
}

// With the latest hold, or the one that is meant.
void LockTable::fill_conflict(const Key& key, Conflict* conflict, const Hold* whose) const {
  if (conflict == nullptr) return;
  conflict->limit = key.limit;
  conflict->holders = key.holders;
  conflict->waiters = key.waiters;
  conflict->permits = permits_in_use(key);
  if (key.holds.empty()) return;
  const Hold& hold = whose == nullptr ? *key.holds.back() : *whose;
  conflict->holder = hold.holder.display_name();
  conflict->session = hold.holder.session_id();
  conflict->client = clients_.of(hold);
  conflict->fence = hold.fence;
  conflict->expires_at = hold.deadline;
  conflict->mode = hold.mode();
}

Event LockTable::granted(const Hold& hold) const {
  return {.type = Event::Type::granted,
          .kind = hold.key->kind,
          .limit = hold.key->limit,
          .first_limit = first_limit(*hold.key),
          .key = hold.key->name(),
          .holder = hold.holder.view(),
          .client = clients_.view_of(hold),
          .mode = hold.mode(),
          .permits = hold.permits(),
          .fence = hold.fence,
          .ttl = hold.ttl,
          .expires_at = hold.deadline};
}

// Keys.

// Precondition: it will be granted at once; a key that nobody has held or waited for is not kept.
Key& LockTable::create(Kind kind, std::string_view name, KeyUnit unit) {
  std::unique_ptr<Key> key = Key::create(kind, name);
  index_.insert(key.get());
  unit.spend();
  return *key.release();
}

std::size_t LockTable::forget_idle(Time since, std::size_t keys_max) noexcept {
  std::size_t forgotten = 0;
  while (forgotten < keys_max && !idle_.empty() && idle_.front()->since <= since) {
    forget(*idle_.front()->key);
    budget_.give_back();
    ++forgotten;
  }
  return forgotten;
}

KeyUnit LockTable::reclaim_idle() noexcept {
  if (idle_.empty()) return {};
  forget(*idle_.front()->key);
  return budget_.take_over();
}

void LockTable::forget(Key& key) {
  assert(key.idle());
  while (key.has_lapsed) {
    Enqueued* lapsed = enqueued_.find_lapsed(&key);
    if (lapsed == nullptr) break;
    drop(*lapsed);
  }
  leave_idle(key);
  end_resize(key);
  index_.remove(&key);
  quiet_until_.erase(&key);
  delete &key;
}

// Room. What hardly anybody uses is kept beside the keys, so that the others take no more memory.

std::uint64_t LockTable::in_use(const Key& key) const {
  if (key.kind == Kind::lock) {
    return key.holders == 0 || key.is_shared() ? key.holders : kWhole;
  }
  return key.holders + (key.has_extra ? extra_permits_.find(&key)->second : 0);
}

bool LockTable::fits(const Key& key, std::uint32_t takes) const {
  return in_use(key) + takes <= key.capacity();
}

// Nobody is overtaken.
bool LockTable::may_enter(const Key& key, std::uint32_t takes) const {
  return key.queue.empty() && fits(key, takes);
}

// Of a key that several may hold.
void LockTable::count_room(Hold& hold, bool is_taken) {
  Key& key = *hold.key;
  is_taken ? hold_index_.insert(&hold) : hold_index_.remove(&hold);
  if (key.kind == Kind::lock) {
    is_taken ? ++shared_holds_ : --shared_holds_;
    return;
  }
  if (hold.takes == 1) return;
  std::uint64_t& extra = extra_permits_[&key];
  is_taken ? extra += hold.takes - 1 : extra -= hold.takes - 1;
  key.has_extra = extra > 0;
  if (!key.has_extra) extra_permits_.erase(&key);
}

// The largest fence of a lock is that of its first hold, in use or not; but of several that share
// it another may have had a larger one.
void LockTable::keep_fence(const Hold& ended) {
  Key& key = *ended.key;
  const Fence fence = largest_beside(ended);
  if (&ended == &key.first) {
    key.first.fence = fence;
    if (const auto past = past_fences_.find(&key); past != past_fences_.end()) {
      key.first.fence = std::max(fence, past->second);
      past_fences_.erase(past);
    }
  } else if (!key.first.in_use) {
    key.first.fence = std::max(key.first.fence, fence);
  } else if (fence > key.first.fence) {
    Fence& past = past_fences_[&key];
    past = std::max(past, fence);
  }
}

Fence LockTable::largest_fence(const Key& key) const {
  if (!key.is_shared()) return key.first.fence;
  const auto past = past_fences_.find(&key);
  return std::max({key.first.fence, largest_beside(*key.holds.front()), key.holds.back()->fence,
                   past == past_fences_.end() ? 0 : past->second});
}

// Of a hold that a journal told of nobody knows whether others shared the lock under a larger fence
// and ended before: a snapshot tells nothing of them. Theirs was one of those granted by then.
Fence LockTable::largest_beside(const Hold& shared) const {
  return shared.fence <= raised_fence_ ? raised_fence_ : shared.fence;
}

// Limits. A resize is in force until the key is idle; a side map has what was before it, so that
// the many keys that nobody resizes take no more memory.

// Whether a request has to name the key's limit. Otherwise it sets the limit.
bool LockTable::has_binding_limit(const Key& key) const {
  return options_.keeps_idle_limits || !key.idle();
}

// Whether a request may name this limit: what is in force, or what the running clients know of; and
// whether it could ever be granted what it takes, which is nothing of one that has its grant.
bool LockTable::matches(const Key& key, std::uint32_t limit, std::uint32_t takes) const {
  if (limit == key.limit) return true;
  return key.resized && limit == first_limit(key) && takes <= key.limit;
}

// A place that asks for more than there will ever be would stand in everybody's way.
void LockTable::end_oversized(Key& key) {
  for (QueuePlace* place = key.queue.front(); place != nullptr;) {
    QueuePlace* const next = key.queue.next(place);
    if (place->takes > key.limit) give_up(*place, Outcome::limit_mismatch);
    place = next;
  }
}

void LockTable::set_limit(Key& key, std::uint32_t limit) {
  if (!key.resized) first_limits_.emplace(&key, key.limit);
  key.resized = true;
  key.limit = limit;
}

void LockTable::end_resize(Key& key) {
  if (!key.resized) return;
  key.limit = first_limit(key);
  key.resized = false;
  first_limits_.erase(&key);
}

// What others ask.

FenceStatus LockTable::fence(At at, std::string_view name) noexcept {
  const Key* key = find_at(at, Kind::lock, name);
  if (key == nullptr) return {false, fence_};
  return {key->holders > 0, largest_fence(*key)};
}

bool LockTable::explain(At at, Kind kind, std::string_view name, Conflict* conflict) noexcept {
  const Key* key = find_at(at, kind, name);
  if (key == nullptr || key->holds.empty()) return false;
  fill_conflict(*key, conflict);
  return true;
}

Stats LockTable::stats() const {
  Stats stats = stats_.stats();
  stats.shared_holds = shared_holds_;
  stats.semaphore_holders = hold_index_.size() - shared_holds_;
  stats.locks_held = stats_.holders() - stats.semaphore_holders;
  stats.keys = index_.size();
  stats.idle_keys = idle_keys_;
  return stats;
}

}  // namespace lockd
