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
KnownClient take_client(Waiter& waiter) {
  return {std::move(waiter.client), std::exchange(waiter.client_from, ClientFrom::nowhere)};
}

// One timer of a key that is due. Named, not pointed to: what runs out first can end what follows.
struct Due {
  Time deadline;
  Timer::What what;
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
  std::vector<Semaphore*> all;
  index_.walk(cursor, index_.size() + 1, [&](Semaphore& s) { all.push_back(&s); });
  for (Semaphore* s : all) {
    while (Waiter* waiter = s->queue.pop_front()) delete waiter;
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
  Semaphore* semaphore = find_at(at, request.kind, request.key);
  if (semaphore != nullptr && has_binding_limit(*semaphore)) {
    Hold* own = find_own(*semaphore, request.holder);
    Waiter* place = find_place(*semaphore, request.holder);
    if (Outcome no = compare_terms(*semaphore, request.limit, takes, own, place);
        no != Outcome::ok) {
      fill_in(*semaphore, conflict);
      return {no};
    }
    if (own != nullptr) {
      take_over(*own, request.holder);
      return grant_again(*own, request.ttl);
    }
    if (place != nullptr) return resume(*place, request, listener, id);
    if (!may_enter(*semaphore, takes)) {
      if (Outcome no = no_place(*semaphore, request, listener); no != Outcome::ok) {
        fill_in(*semaphore, conflict);
        return {no};
      }
      Waiter& waiter = join(*semaphore, request);
      waiter.listener = listener;
      waiter.id = id;
      arm(waiter, request.wait);
      return {Outcome::queued, {}, waiter.slot};
    }
  }
  Hold* hold = nullptr;
  const Outcome taken = take(semaphore, request, std::move(spare), &hold);
  return taken == Outcome::ok ? Reply{taken, grant_of(*hold)} : Reply{taken};
}

// Why a request gets no place in the queue, or ok and a unit for it.
Outcome LockTable::no_place(const Semaphore& semaphore, const AcquireRequest& request,
                            const Listener* listener) {
  const bool is_try = request.wait == Duration::zero();
  if (!is_try && listener == nullptr) return Outcome::held;  // not counted: it will ask again
  if (is_refused_by_queue(semaphore, request.wait)) {
    return refuse(request, &semaphore, Outcome::max_waiters);
  }
  if (is_try) return stats_.refused(Outcome::held);
  return admit(request, &semaphore);
}

LockTable::Reply LockTable::enqueue(At at, const EnqueueRequest& request, KeyUnit spare) noexcept {
  if (Outcome bad = check_form(request); bad != Outcome::ok) return {bad};
  const SessionId session = request.holder.session_id();
  if (session == 0) return {Outcome::invalid_holder};

  Semaphore* semaphore = find_at(at, request.kind, request.key);
  Enqueued* lapsed = nullptr;  // an earlier one, which is in nobody's way
  if (semaphore != nullptr) {
    if (const std::optional<Reply> again = enqueue_again(*semaphore, request)) return *again;
    lapsed = enqueued_.find(session, semaphore);
    if (lapsed != nullptr && !lapsed->lapsed_peers.linked()) return {Outcome::already_enqueued};
    const bool is_bound = has_binding_limit(*semaphore);
    if (is_bound && !matches(*semaphore, request.limit, takes_of(request))) {
      return {stats_.refused(Outcome::limit_mismatch)};
    }
    if (!semaphore->idle() && !may_enter(*semaphore, takes_of(request))) {
      if (queue_is_full(*semaphore)) return {refuse(request, semaphore, Outcome::max_waiters)};
      if (Outcome no = admit(request, semaphore); no != Outcome::ok) return {no};
      if (lapsed != nullptr) drop(*lapsed);
      Waiter& waiter = join(*semaphore, request);
      waiter.two_phase = true;
      begin_two_phase(session, *semaphore).waiter = &waiter;
      return {Outcome::queued, {}, waiter.slot};
    }
  }
  Hold* hold = nullptr;
  const Outcome taken = take(semaphore, request, std::move(spare), &hold);
  if (taken != Outcome::ok) return {taken};
  hold->two_phase = true;
  if (lapsed != nullptr) drop(*lapsed);
  begin_two_phase(session, *hold->semaphore).hold = hold;
  return {Outcome::ok, grant_of(*hold)};
}

// Takes what has room: a key that is idle, or nobody waits for, or is not there yet.
template <typename Request>
Outcome LockTable::take(Semaphore* semaphore, const Request& request, KeyUnit spare, Hold** hold) {
  if (fence_ >= kFenceMax) return Outcome::fences_exhausted;
  KeyUnit unit;
  if (semaphore == nullptr) {
    if (!is_name(request.key)) return Outcome::invalid_key;  // those there have been looked at
    unit = spare ? std::move(spare) : budget_.take();
    if (!unit) return Outcome::max_keys;
  }
  if (Outcome no = admit(request, semaphore); no != Outcome::ok) return no;
  StoredHolder holder(request.holder);
  if (semaphore == nullptr) semaphore = &create(request.kind, request.key, std::move(unit));
  if (semaphore->idle()) semaphore->limit = request.limit;
  *hold = &grant(*semaphore, std::move(holder), client_of(request), takes_of(request),
                 capped(request.ttl), fence_ + 1);
  stats_.granted_at_once(**hold, now_);
  return Outcome::ok;
}

LockTable::Reply LockTable::await_turn(At at, SessionId session, Kind kind, std::string_view key,
                                       Duration wait, Listener* listener,
                                       std::uint64_t id) noexcept {
  if (wait < Duration::zero()) return {Outcome::invalid_wait};

  Semaphore* semaphore = find_at(at, kind, key);
  Enqueued* enqueued = semaphore == nullptr ? nullptr : enqueued_.find(session, semaphore);
  if (enqueued == nullptr) return {is_name(key) ? Outcome::not_enqueued : Outcome::invalid_key};
  if (Hold* hold = enqueued->hold) {
    drop(*enqueued);
    hold->two_phase = false;
    mark(*hold, /*unacknowledged=*/false);
    refresh(*hold, hold->ttl);
    return {Outcome::ok, grant_of(*hold)};
  }
  Waiter* waiter = enqueued->waiter;
  if (waiter == nullptr) {
    drop(*enqueued);
    return {Outcome::expired};
  }
  if (waiter->listener != nullptr) return {Outcome::not_enqueued};  // somebody awaits it already
  if (wait == Duration::zero()) {
    leave_queue(*waiter, Outcome::timeout);
    return {Outcome::timeout};
  }
  waiter->listener = listener;
  waiter->id = id;
  arm(*waiter, wait);
  return {Outcome::queued, {}, waiter->slot};
}

bool LockTable::cancel(Time now, std::uint32_t slot, const Listener* listener,
                       std::uint64_t id) noexcept {
  advance(now, kStepsPerCall);
  Waiter* waiter = slots_.find(slot);
  if (waiter == nullptr || listener == nullptr)
    return false;  // a place that nobody awaits has none
  if (waiter->listener != listener || waiter->id != id) return false;
  if (behind_) {
    catch_up(*waiter->semaphore);
    waiter = slots_.find(slot);
    if (waiter == nullptr) return false;
  }
  leave_queue(*waiter, Outcome::cancelled);
  return true;
}

// Renewing and ending.

LockTable::Reply LockTable::renew(At at, const HoldId& id, std::optional<Duration> ttl) noexcept {
  if (ttl.has_value() && *ttl <= Duration::zero()) return {Outcome::invalid_ttl};

  const Semaphore* semaphore = find_at(at, id.kind, id.key);
  Hold* hold = find_known(semaphore, id.fence);
  if (hold == nullptr || !hold->holder.equals(id.holder)) return {why_not(semaphore, id)};
  refresh(*hold, ttl.value_or(hold->ttl));
  Grant grant = grant_of(*hold);
  grant.ttl = hold->deadline - now_;
  return {Outcome::ok, grant};
}

Outcome LockTable::release(At at, const HoldId& id) noexcept {
  Semaphore* semaphore = find_at(at, id.kind, id.key);
  Hold* hold = find_known(semaphore, id.fence);
  if (hold == nullptr || !hold->holder.equals(id.holder)) return why_not(semaphore, id);
  end_hold(*hold, EndCause::released);
  pass_on(*semaphore);
  return Outcome::ok;
}

bool LockTable::is_good(const AdminNote& note) {
  return is_plain_text(note.reason, kNoteSizeMax) && is_plain_text(note.by, kHolderSizeMax);
}

Outcome LockTable::resize(At at, std::string_view key, std::uint32_t limit,
                          const AdminNote& note) noexcept {
  if (!is_good(note)) return Outcome::invalid_note;
  if (limit < 1 || limit > kLimitMax) return Outcome::invalid_limit;

  Semaphore* semaphore = find_at(at, Kind::semaphore, key);
  if (semaphore == nullptr) return is_name(key) ? Outcome::expired : Outcome::invalid_key;
  if (semaphore->idle()) return Outcome::expired;
  set_limit(*semaphore, limit);
  if (options_.events) {
    effects_.events.push_back({.type = Event::Type::resized,
                               .kind = Kind::semaphore,
                               .limit = limit,
                               .key = semaphore->key()});
  }
  stats_.resized(*semaphore, note, now_);
  end_oversized(*semaphore);
  pass_on(*semaphore);
  return Outcome::ok;
}

bool LockTable::withdraw(At at, const HoldId& id) noexcept {
  Semaphore* semaphore = find_at(at, id.kind, id.key);
  Hold* hold = find_known(semaphore, id.fence);
  if (hold == nullptr || hold->renewed || !hold->holder.equals(id.holder)) return false;
  end_hold(*hold, EndCause::disconnected);
  pass_on(*semaphore);
  return true;
}

Outcome LockTable::why_not(const Semaphore* semaphore, const HoldId& id) const {
  if (semaphore == nullptr) return is_name(id.key) ? Outcome::expired : Outcome::invalid_key;
  if (semaphore->holds.empty()) return Outcome::expired;
  if (find_hold(semaphore, id.fence) != nullptr) return Outcome::not_holder;
  return semaphore->holds.back()->fence > id.fence ? Outcome::stale : Outcome::not_holder;
}

// The next hold that an admin ends.
Hold* LockTable::find_revoked(const Semaphore* semaphore, const Revocation& revocation) const {
  if (revocation.fence.has_value()) return find_known(semaphore, *revocation.fence);
  if (semaphore == nullptr || semaphore->holds.empty()) return nullptr;
  Hold* oldest = semaphore->holds.front();
  return oldest->fence <= revocation.last ? oldest : nullptr;
}

Outcome LockTable::why_not(const Semaphore* semaphore, const Revocation& revocation) {
  if (semaphore == nullptr && !is_name(revocation.key)) return Outcome::invalid_key;
  return semaphore == nullptr || semaphore->holds.empty() ? Outcome::expired : Outcome::stale;
}

// Time.

bool LockTable::advance(Time now, int budget) noexcept {
  now_ = std::max(now_, now);
  while (Timer* timer = timers_.pop_due(now_, &budget)) run_out(*timer);
  behind_ = budget <= 0;
  if (!behind_ && !quiet_until_.empty()) quiet_until_ = {};
  return !behind_;
}

Semaphore* LockTable::find_at(At at, Kind kind, std::string_view key) {
  known_ = fence_;
  advance(at.now, kStepsPerCall);
  const std::uint64_t hash = at.key_hash.has_value() ? *at.key_hash : index_.hash_of(key);
  Semaphore* semaphore = index_.find(kind, key, hash);
  if (behind_ && semaphore != nullptr) catch_up(*semaphore);
  return semaphore;
}

// Brings one key up to date while the table as a whole is behind. That walks through all that the
// key has, so it is done only when something there may have fallen due, and what it costs is first
// spent on the table: whoever makes it walk again and again makes it get less behind, until it is
// not.
void LockTable::catch_up(Semaphore& semaphore) {
  if (is_quiet(semaphore)) return;
  const std::uint64_t walked = std::uint64_t{semaphore.holders} + semaphore.waiters;
  if (walked > kStepsPerCall) {
    advance(now_, static_cast<int>(std::min(walked / 8, kStepsPerWalkMax)));
  }
  if (behind_) end_due(semaphore);
}

bool LockTable::is_quiet(const Semaphore& semaphore) const {
  const auto known = quiet_until_.find(&semaphore);
  return known != quiet_until_.end() && now_ < known->second;
}

// In the order in which advance() would have come to it.
void LockTable::end_due(Semaphore& semaphore) {
  std::vector<Due> due;
  Time next = Time::never();
  for (const Hold* h = semaphore.holds.front(); h != nullptr; h = semaphore.holds.next(h)) {
    if (h->deadline <= now_) {
      due.push_back({h->deadline, h->what, h->fence, 0});
    } else {
      next = std::min(next, h->deadline);
    }
  }
  for (const Waiter* w = semaphore.queue.front(); w != nullptr; w = semaphore.queue.next(w)) {
    if (!w->armed()) continue;
    if (w->deadline <= now_) {
      due.push_back({w->deadline, w->what, 0, w->slot});
    } else {
      next = std::min(next, w->deadline);
    }
  }
  quiet_until_[&semaphore] = next;  // what is armed from here on moves it: see arm()
  std::sort(due.begin(), due.end(), [](const Due& a, const Due& b) {
    return std::pair(a.deadline, a.what) < std::pair(b.deadline, b.what);
  });
  for (const Due& d : due) {
    Timer* timer = nullptr;
    if (d.what == Timer::What::lease) {
      timer = find_hold(&semaphore, d.fence);
    } else {
      timer = slots_.find(d.slot);
    }
    if (timer == nullptr || timer->deadline != d.deadline) continue;
    timers_.disarm(*timer);
    run_out(*timer);
  }
}

void LockTable::run_out(Timer& timer) {
  if (timer.what == Timer::What::wait) {
    leave_queue(static_cast<Waiter&>(timer), Outcome::timeout);
    return;
  }
  Hold& hold = static_cast<Hold&>(timer);
  Semaphore& semaphore = *hold.semaphore;
  end_hold(hold, EndCause::expired);
  pass_on(semaphore);
}

void LockTable::arm(Timer& timer, Duration after) {
  timers_.arm(timer, now_ + after);
  effects_.earliest = std::min(effects_.earliest, timer.deadline);
  if (quiet_until_.empty()) return;
  const auto known = quiet_until_.find(&semaphore_of(timer));
  if (known != quiet_until_.end()) known->second = std::min(known->second, timer.deadline);
}

const Semaphore& LockTable::semaphore_of(const Timer& timer) {
  if (timer.what == Timer::What::lease) return *static_cast<const Hold&>(timer).semaphore;
  return *static_cast<const Waiter&>(timer).semaphore;
}

// The queue of a key.

template <typename Request>
Waiter& LockTable::join(Semaphore& semaphore, const Request& request) {
  auto waiter = std::make_unique<Waiter>();
  waiter->semaphore = &semaphore;
  waiter->takes = takes_of(request);
  waiter->ttl = capped(request.ttl);
  waiter->since = now_;
  waiter->holder = StoredHolder(request.holder);
  KnownClient client = client_of(request);
  waiter->client = std::move(client.identity);
  waiter->client_from = client.from;
  slots_.insert(waiter.get());
  join_owner(*waiter);
  if (semaphore.idle()) leave_idle(semaphore);
  semaphore.queue.push_back(waiter.get());
  ++semaphore.waiters;
  ++stats_.waiters(semaphore.kind);
  stats_.queued(*waiter);
  return *waiter.release();
}

// Whether a request that cannot be granted at once is refused because the queue is full.
bool LockTable::is_refused_by_queue(const Semaphore& semaphore, Duration wait) const {
  const bool is_try = wait == Duration::zero();
  return (!is_try || options_.refuses_tries_at_full_queue) && queue_is_full(semaphore);
}

bool LockTable::queue_is_full(const Semaphore& semaphore) const {
  return options_.waiters_max != 0 && semaphore.waiters >= options_.waiters_max;
}

// After a hold has ended, or the first has left the queue: that moves up, or the key is idle.
void LockTable::pass_on(Semaphore& semaphore) {
  if (!semaphore.queue.empty()) promote(semaphore);
  if (semaphore.idle()) {
    end_resize(semaphore);
    semaphore.first.since = now_;
    idle_.push_back(&semaphore.first);
    ++idle_keys_;
    ++idlings_;
  }
}

// Does nothing to a key that was made just now.
void LockTable::leave_idle(Semaphore& semaphore) {
  if (!semaphore.first.peers.linked()) return;
  idle_.remove(&semaphore.first);
  --idle_keys_;
}

// Whoever is first comes in, as long as there is room for them. A set that has ended counts for
// nothing, though its place may still be here.
void LockTable::promote(Semaphore& semaphore) {
  while (!semaphore.queue.empty()) {
    Waiter& waiter = *semaphore.queue.front();
    if (is_over(waiter)) {
      give_up(waiter, sets_.find(&waiter)->second.set->outcome);
      continue;
    }
    if (!fits(semaphore, waiter.takes)) return;
    if (waiter.of_set) return stir(waiter);
    if (ending_ != 0 && waiter.holder.session_id() == ending_) {
      give_up(waiter, Outcome::cancelled);
      continue;
    }
    if (fence_ >= kFenceMax) {
      give_up(waiter, Outcome::fences_exhausted);
      continue;
    }
    Enqueued* parked = nullptr;
    if (waiter.two_phase && waiter.listener == nullptr) {
      parked = enqueued_.find(waiter.holder.session_id(), &semaphore);
      waiter.two_phase = false;  // it will be the hold's
    }
    Hold& hold = grant(waiter, fence_ + 1);
    if (parked != nullptr) {
      parked->waiter = nullptr;
      parked->hold = &hold;
      hold.two_phase = true;
      mark(hold, /*unacknowledged=*/true);
    }
    settle(waiter, Outcome::ok, grant_of(hold));
    settle_namesakes(hold);
  }
}

// Nobody waits behind their own hold: the other places of a name that was granted the key have that
// grant, if they ask for the same. It is more than one caller's then, so none of them can withdraw
// it.
void LockTable::settle_namesakes(Hold& hold) {
  if (hold.holder.is_secret()) return;
  for (Waiter* other : places_.all(hold.semaphore, hold.holder.view())) {
    if (other->of_set) {
      stir(*other);
    } else if (other->takes != hold.takes) {
      give_up(*other, mismatch(hold.semaphore->kind));
    } else {
      hold.renewed = true;
      give_up(*other, Outcome::ok, grant_of(hold));
    }
  }
}

// What becomes of a set is not for one table to say.
void LockTable::stir(const Waiter& waiter) {
  effects_.sets.push_back(sets_.find(&waiter)->second.set);
}

// It is a place of a set that has ended by way of another of its keys.
bool LockTable::is_over(const Waiter& waiter) const {
  return waiter.of_set && sets_.find(&waiter)->second.set->is_over();
}

// False if it had ended before. Else its other places have to go, too.
bool LockTable::end_set(const Waiter& waiter, Outcome why) {
  if (!sets_.find(&waiter)->second.set->end(why)) return false;
  stir(waiter);
  return true;
}

// Whoever was behind the first may fit where that did not.
void LockTable::leave_queue(Waiter& waiter, Outcome why) {
  Semaphore& semaphore = *waiter.semaphore;
  const Waiter* const first = semaphore.queue.front();
  const bool was_first = first == &waiter || is_over(*first);
  give_up(waiter, why);
  if (was_first) pass_on(semaphore);
}

// Leaves the queue without a grant of its own.
void LockTable::give_up(Waiter& waiter, Outcome why, const Grant& grant) {
  stats_.gave_up(waiter, why, now_);
  settle(waiter, why, grant);
}

// The wait is over: whoever waits is told, and the place is gone.
void LockTable::settle(Waiter& waiter, Outcome outcome, const Grant& grant) {
  if (waiter.listener != nullptr && (!waiter.of_set || end_set(waiter, outcome))) {
    effects_.wait_results.push_back(
        {waiter.listener, waiter.id, outcome, grant, now_ - waiter.since});
  }
  leave(waiter);
}

void LockTable::leave(Waiter& waiter) {
  Semaphore& semaphore = *waiter.semaphore;
  if (waiter.of_set) {
    const auto place = sets_.find(&waiter);
    place->second.set->parts[place->second.part].waiter = nullptr;
    sets_.erase(place);
  }
  leave_owner(waiter);
  timers_.disarm(waiter);
  semaphore.queue.remove(&waiter);
  --semaphore.waiters;
  --stats_.waiters(semaphore.kind);
  slots_.remove(&waiter);
  // What a place that was granted had is the hold's: its unit, its holder and its client.
  if (!waiter.holder.is_nobody()) units_.give_back(waiter.holder.view());
  clients_.drop(take_client(waiter));
  delete &waiter;
}

void LockTable::join_owner(Waiter& waiter) {
  places_.insert(&waiter);
  const SessionId session = waiter.holder.session_id();
  if (session == 0) return;
  SessionItems& items = sessions_[session];
  items.waiters.push_back(&waiter);
  ++items.places;
}

// The place is none of its name's, or its session's, any more.
void LockTable::leave_owner(Waiter& waiter) {
  places_.remove(&waiter);
  if (!waiter.session_peers.linked()) return;
  const SessionId session = waiter.holder.session_id();
  SessionItems& items = sessions_[session];
  items.waiters.remove(&waiter);
  --items.places;
  if (waiter.two_phase) drop(*enqueued_.find(session, waiter.semaphore));
}

Enqueued& LockTable::begin_two_phase(SessionId session, Semaphore& semaphore) {
  Enqueued* enqueued = enqueued_.insert(session, &semaphore);
  sessions_[session].enqueued.push_back(enqueued);
  return *enqueued;
}

void LockTable::drop(Enqueued& enqueued) {
  sessions_[enqueued.session].enqueued.remove(&enqueued);
  enqueued_.remove(&enqueued);
}

// Holds.

Hold& LockTable::grant(Semaphore& semaphore, StoredHolder holder, KnownClient client,
                       std::uint32_t takes, Duration ttl, Fence fence) {
  fence_ = fence;
  Hold& hold = add_hold(semaphore, std::move(holder), takes, fence, ttl);
  clients_.keep(hold, std::move(client));
  arm(hold, ttl);
  if (options_.events) effects_.events.push_back(granted(hold));
  return hold;
}

// To the first of a queue. Its place is still there: it has to leave.
Hold& LockTable::grant(Waiter& waiter, Fence fence) {
  leave_owner(waiter);
  Hold& hold = grant(*waiter.semaphore, std::move(waiter.holder), take_client(waiter), waiter.takes,
                     waiter.ttl, fence);
  stats_.granted_from_queue(hold, waiter, now_);
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
                             .kind = hold.semaphore->kind,
                             .key = hold.semaphore->key(),
                             .fence = hold.fence,
                             .ttl = hold.ttl,
                             .expires_at = hold.deadline});
}

// Leaves its permits free: pass_on() must follow.
void LockTable::end_hold(Hold& hold, EndCause cause, const AdminNote& note) {
  Semaphore& semaphore = *hold.semaphore;
  stats_.ended(hold, cause, now_, note);
  if (options_.events) {
    effects_.events.push_back({.type = Event::Type::ended,
                               .kind = semaphore.kind,
                               .cause = cause,
                               .key = semaphore.key(),
                               .fence = hold.fence});
  }
  if (hold.two_phase) {
    Enqueued* enqueued = enqueued_.find(hold.holder.session_id(), &semaphore);
    if (cause != EndCause::expired && cause != EndCause::revoked) {
      drop(*enqueued);
    } else if (Enqueued* oldest = enqueued_.lapse(enqueued)) {
      drop(*oldest);
    }
  }
  remove_hold(hold);
}

Hold& LockTable::add_hold(Semaphore& semaphore, StoredHolder holder, std::uint32_t takes,
                          Fence fence, Duration ttl) {
  const bool first_is_free = !semaphore.first.in_use;
  Hold* hold = first_is_free ? &semaphore.first : new Hold(&semaphore);
  if (semaphore.idle()) leave_idle(semaphore);
  hold->in_use = true;
  hold->takes = takes;
  hold->fence = fence;
  hold->ttl = ttl;
  hold->since = now_;
  hold->holder = std::move(holder);
  // Fences rise, so its place is at the end; only a snapshot that is replayed may come behind what
  // was granted while it was written, but then each of a key's holds behind the one before it.
  Hold* after = semaphore.holds.back();
  if (after == nullptr || after->fence < fence) {
    semaphore.holds.push_back(hold);
  } else {
    const Hold* before = replayed_;
    const bool follows =
        before != nullptr && before->semaphore == &semaphore && before->fence < fence;
    Hold* successor = follows ? semaphore.holds.next(before) : semaphore.holds.front();
    while (successor->fence < fence) successor = semaphore.holds.next(successor);
    semaphore.holds.insert_before(hold, successor);
  }
  ++semaphore.holders;
  if (semaphore.has_several()) count_room(*hold, /*is_taken=*/true);
  if (hold->holder.session_id() != 0) join_session(*hold);
  return *hold;
}

void LockTable::join_session(Hold& hold) {
  const SessionId session = hold.holder.session_id();
  if (session == 0) return;
  SessionItems& items = sessions_[session];
  items.holds.push_back(&hold);
  ++items.held;
  ++items.told;
}

void LockTable::leave_session(Hold& hold) {
  if (!hold.session_peers.linked()) return;
  SessionItems& items = sessions_[hold.holder.session_id()];
  items.holds.remove(&hold);
  --items.held;
  if (!hold.unacknowledged) --items.told;
}

void LockTable::mark(Hold& hold, bool unacknowledged) {
  if (hold.unacknowledged == unacknowledged) return;
  hold.unacknowledged = unacknowledged;
  std::size_t& told = sessions_[hold.holder.session_id()].told;
  unacknowledged ? --told : ++told;
}

void LockTable::remove_hold(Hold& hold) {
  Semaphore& semaphore = *hold.semaphore;
  timers_.disarm(hold);
  if (semaphore.has_several()) count_room(hold, /*is_taken=*/false);
  units_.give_back(owner_of(hold));
  clients_.forget(hold);
  if (hold.session_peers.linked()) leave_session(hold);
  semaphore.holds.remove(&hold);
  if (hold.mode() == Mode::shared) keep_fence(hold);
  if (replayed_ == &hold) replayed_ = nullptr;
  --semaphore.holders;
  if (&hold != &semaphore.first) {
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
Outcome LockTable::admit(const Request& request, const Semaphore* semaphore) {
  const Outcome outcome = units_.take(request.holder);
  return outcome == Outcome::ok ? outcome : refuse(request, semaphore, outcome);
}

// By a cap. Hands the reason back.
template <typename Request>
Outcome LockTable::refuse(const Request& request, const Semaphore* semaphore, Outcome why) {
  record_refusal(request, semaphore, why, now_);
  return stats_.refused(why);
}

template <typename Request>
void LockTable::record_refusal(const Request& request, const Semaphore* semaphore, Outcome why,
                               Time now) {
  stats_.record_refusal({.kind = request.kind,
                         .key = request.key,
                         .holder = request.holder,
                         .client = view_of(request),
                         .limit = request.limit,
                         .takes = takes_of(request),
                         .ttl = request.ttl},
                        semaphore, why, now);
}
template void LockTable::record_refusal(const AcquireRequest&, const Semaphore*, Outcome, Time);
template void LockTable::record_refusal(const EnqueueRequest&, const Semaphore*, Outcome, Time);
// And for SetRules.
template Outcome LockTable::admit(const AcquireRequest&, const Semaphore*);
template Outcome LockTable::refuse(const AcquireRequest&, const Semaphore*, Outcome);
template Waiter& LockTable::join(Semaphore&, const AcquireRequest&);

Duration LockTable::capped(Duration ttl) const {
  return options_.ttl_max == Duration::zero() ? ttl : std::min(ttl, options_.ttl_max);
}

// The hold that a caller means.
Hold* LockTable::find_known(const Semaphore* semaphore, Fence fence) const {
  return fence <= known_ ? find_hold(semaphore, fence) : nullptr;
}

Hold* LockTable::find_hold(const Semaphore* semaphore, Fence fence) const {
  if (semaphore == nullptr || semaphore->holds.empty()) return nullptr;
  Hold* hold = semaphore->holds.front();
  if (hold->fence == fence) return hold;
  return semaphore->has_several() ? hold_index_.find(semaphore, fence) : nullptr;
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
void LockTable::fill_in(const Semaphore& semaphore, Conflict* conflict, const Hold* whose) const {
  if (conflict == nullptr) return;
  conflict->limit = semaphore.limit;
  conflict->holders = semaphore.holders;
  conflict->waiters = semaphore.waiters;
  conflict->permits = permits_in_use(semaphore);
  if (semaphore.holds.empty()) return;
  const Hold& hold = whose == nullptr ? *semaphore.holds.back() : *whose;
  conflict->holder = hold.holder.display_name();
  conflict->session = hold.holder.session_id();
  conflict->client = clients_.of(hold);
  conflict->fence = hold.fence;
  conflict->expires_at = hold.deadline;
  conflict->mode = hold.mode();
}

Event LockTable::granted(const Hold& hold) const {
  return {.type = Event::Type::granted,
          .kind = hold.semaphore->kind,
          .limit = hold.semaphore->limit,
          .first_limit = first_limit(*hold.semaphore),
          .key = hold.semaphore->key(),
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
Semaphore& LockTable::create(Kind kind, std::string_view key, KeyUnit unit) {
  std::unique_ptr<Semaphore> semaphore = Semaphore::create(kind, key);
  index_.insert(semaphore.get());
  unit.spend();
  return *semaphore.release();
}

std::size_t LockTable::forget_idle(Time since, std::size_t keys_max) noexcept {
  std::size_t forgotten = 0;
  while (forgotten < keys_max && !idle_.empty() && idle_.front()->since <= since) {
    forget(*idle_.front()->semaphore);
    budget_.give_back();
    ++forgotten;
  }
  return forgotten;
}

KeyUnit LockTable::reclaim_idle() noexcept {
  if (idle_.empty()) return {};
  forget(*idle_.front()->semaphore);
  return budget_.take_over();
}

void LockTable::forget(Semaphore& semaphore) {
  assert(semaphore.idle());
  while (semaphore.has_lapsed) {
    Enqueued* lapsed = enqueued_.find_lapsed(&semaphore);
    if (lapsed == nullptr) break;
    drop(*lapsed);
  }
  leave_idle(semaphore);
  end_resize(semaphore);
  index_.remove(&semaphore);
  quiet_until_.erase(&semaphore);
  delete &semaphore;
}

// Room. What hardly anybody uses is kept beside the keys, so that the others take no more memory.

std::uint64_t LockTable::in_use(const Semaphore& semaphore) const {
  if (semaphore.kind == Kind::lock) {
    return semaphore.holders == 0 || semaphore.is_shared() ? semaphore.holders : kWhole;
  }
  return semaphore.holders + (semaphore.has_extra ? extra_permits_.find(&semaphore)->second : 0);
}

bool LockTable::fits(const Semaphore& semaphore, std::uint32_t takes) const {
  return in_use(semaphore) + takes <= semaphore.capacity();
}

// Nobody is overtaken.
bool LockTable::may_enter(const Semaphore& semaphore, std::uint32_t takes) const {
  return semaphore.queue.empty() && fits(semaphore, takes);
}

// Of a key that several may hold.
void LockTable::count_room(Hold& hold, bool is_taken) {
  Semaphore& semaphore = *hold.semaphore;
  is_taken ? hold_index_.insert(&hold) : hold_index_.remove(&hold);
  if (semaphore.kind == Kind::lock) {
    is_taken ? ++shared_holds_ : --shared_holds_;
    return;
  }
  if (hold.takes == 1) return;
  std::uint64_t& extra = extra_permits_[&semaphore];
  is_taken ? extra += hold.takes - 1 : extra -= hold.takes - 1;
  semaphore.has_extra = extra > 0;
  if (!semaphore.has_extra) extra_permits_.erase(&semaphore);
}

// The largest fence of a lock is that of its first hold, in use or not; but of several that share
// it another may have had a larger one.
void LockTable::keep_fence(const Hold& ended) {
  Semaphore& semaphore = *ended.semaphore;
  const Fence fence = largest_beside(ended);
  if (&ended == &semaphore.first) {
    semaphore.first.fence = fence;
    if (const auto past = past_fences_.find(&semaphore); past != past_fences_.end()) {
      semaphore.first.fence = std::max(fence, past->second);
      past_fences_.erase(past);
    }
  } else if (!semaphore.first.in_use) {
    semaphore.first.fence = std::max(semaphore.first.fence, fence);
  } else if (fence > semaphore.first.fence) {
    Fence& past = past_fences_[&semaphore];
    past = std::max(past, fence);
  }
}

Fence LockTable::largest_fence(const Semaphore& semaphore) const {
  if (!semaphore.is_shared()) return semaphore.first.fence;
  const auto past = past_fences_.find(&semaphore);
  return std::max({semaphore.first.fence, largest_beside(*semaphore.holds.front()),
                   semaphore.holds.back()->fence, past == past_fences_.end() ? 0 : past->second});
}

// Of a hold that a journal told of nobody knows whether others shared the lock under a larger fence
// and ended before: a snapshot tells nothing of them. Theirs was one of those granted by then.
Fence LockTable::largest_beside(const Hold& shared) const {
  return shared.fence <= raised_fence_ ? raised_fence_ : shared.fence;
}

// Limits. A resize is in force until the key is idle; a side map has what was before it, so that
// the many keys that nobody resizes take no more memory.

// Whether a request has to name the key's limit. Otherwise it sets the limit.
bool LockTable::has_binding_limit(const Semaphore& semaphore) const {
  return options_.keeps_idle_limits || !semaphore.idle();
}

// Whether a request may name this limit: what is in force, or what the running clients know of; and
// whether it could ever be granted what it takes, which is nothing of one that has its grant.
bool LockTable::matches(const Semaphore& semaphore, std::uint32_t limit,
                        std::uint32_t takes) const {
  if (limit == semaphore.limit) return true;
  return semaphore.resized && limit == first_limit(semaphore) && takes <= semaphore.limit;
}

// A place that asks for more than there will ever be would stand in everybody's way.
void LockTable::end_oversized(Semaphore& semaphore) {
  for (Waiter* waiter = semaphore.queue.front(); waiter != nullptr;) {
    Waiter* const next = semaphore.queue.next(waiter);
    if (waiter->takes > semaphore.limit) give_up(*waiter, Outcome::limit_mismatch);
    waiter = next;
  }
}

void LockTable::set_limit(Semaphore& semaphore, std::uint32_t limit) {
  if (!semaphore.resized) first_limits_.emplace(&semaphore, semaphore.limit);
  semaphore.resized = true;
  semaphore.limit = limit;
}

void LockTable::end_resize(Semaphore& semaphore) {
  if (!semaphore.resized) return;
  semaphore.limit = first_limit(semaphore);
  semaphore.resized = false;
  first_limits_.erase(&semaphore);
}

// What others ask.

FenceStatus LockTable::fence(At at, std::string_view key) noexcept {
  const Semaphore* semaphore = find_at(at, Kind::lock, key);
  if (semaphore == nullptr) return {false, fence_};
  return {semaphore->holders > 0, largest_fence(*semaphore)};
}

bool LockTable::explain(At at, Kind kind, std::string_view key, Conflict* conflict) noexcept {
  const Semaphore* semaphore = find_at(at, kind, key);
  if (semaphore == nullptr || semaphore->holds.empty()) return false;
  fill_in(*semaphore, conflict);
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
