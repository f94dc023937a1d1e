#include "core/table_state.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/text.h"

namespace lockd {
namespace {

// What a call spends at most on the table before it walks through one key.
constexpr std::uint64_t kStepsPerWalkMax = 128 * 1024;

// A timer that is due, by name and not by pointer: what ends first can end what follows.
struct Due {
  Time deadline;
  Timer::Kind kind;
  Fence fence;
  std::uint32_t slot;
};

const Key& key_of(const Timer& timer) {
  if (timer.kind == Timer::Kind::lease) return *static_cast<const Hold&>(timer).key;
  return *static_cast<const QueuePlace&>(timer).key;
}

KnownClient move_client(QueuePlace& place) {
  return {std::move(place.client), std::exchange(place.client_from, ClientFrom::nowhere)};
}

KnownClient known_client(const KeyRequest& request, ClientNames& clients) {
  if (request.holder.is_secret()) return ClientNames::of_session(request.holder.session());
  return clients.share({{}, request.peer, request.note});
}

// The holder whose unit a hold uses. A hold that is left to its lease belongs to no session.
Holder owner_of(const Hold& hold) {
  const bool is_left = hold.holder.is_secret() && !hold.session_peers.linked();
  return is_left ? Holder::of_secret(0) : hold.holder.view();
}

}  // namespace

TableState::TableState(const TableOptions& options, KeyBudget& budget, HoldBudget* holds)
    : options_(options),
      index_(options.hash_key),
      limits_(options_, budget, holds, stats_),
      fences_{options.last_fence} {}

TableState::~TableState() {
  Cursor cursor;
  std::vector<Key*> all;
  index_.walk(cursor, index_.size() + 1, [&](Key& key) { all.push_back(&key); });
  for (Key* key : all) {
    while (QueuePlace* place = key->queue.pop_front()) delete_place(place);
    while (Hold* hold = key->holds.pop_front()) {
      if (hold != &key->first) delete hold;
    }
    limits_.keys().give_back();
    delete key;
  }
}

// Time.

bool TableState::advance(Time now, int budget) {
  set_now(now);
  while (Timer* timer = timers_.pop_due(now_, &budget)) on_timer(*timer);
  const bool is_late = budget <= 0;
  if (is_late && !late_) ++lags_;
  late_ = is_late;
  return !late_;
}

Key* TableState::find(At at, Kind kind, std::string_view name) {
  fences_.known = fences_.last;
  advance(at.now, kStepsPerCall);
  const std::uint64_t hash = at.key_hash.has_value() ? *at.key_hash : index_.hash_of(name);
  Key* key = index_.find(kind, name, hash);
  if (key != nullptr) catch_up(*key);
  return key;
}

// While the table is late, walks through everything this key has, but only if something there may
// be due. A walk first spends its cost on the table as a whole, so that repeated walks end the lag.
void TableState::end_due_at(Key& key) {
  if (key.idle() || is_quiet(key)) return;
  const std::uint64_t walked = std::uint64_t{key.holders} + key.waiters();
  if (walked > kStepsPerCall) {
    advance(now_, static_cast<int>(std::min(walked / 8, kStepsPerWalkMax)));
  }
  if (!late_ || key.idle()) return;
  std::vector<Due> due;
  Time next = Time::never();
  for (const Hold* h = key.holds.front(); h != nullptr; h = key.holds.next(h)) {
    if (h->deadline <= now_) {
      due.push_back({h->deadline, h->kind, h->fence, 0});
    } else {
      next = std::min(next, h->deadline);
    }
  }
  for (const QueuePlace* w = key.queue.front(); w != nullptr; w = key.queue.next(w)) {
    if (!w->armed()) continue;
    if (w->deadline <= now_) {
      due.push_back({w->deadline, w->kind, 0, w->slot});
    } else {
      next = std::min(next, w->deadline);
    }
  }
  if (walked > kStepsPerCall) {       // a short walk may be repeated
    key.extras().quiet_until = next;  // arm() keeps it true
    key.extras().lag = lags_;
  }
  // In the order in which advance() would have ended them.
  std::sort(due.begin(), due.end(), [](const Due& a, const Due& b) {
    return std::pair(a.deadline, a.kind) < std::pair(b.deadline, b.kind);
  });
  for (const Due& d : due) {
    Timer* timer = nullptr;
    if (d.kind == Timer::Kind::lease) {
      timer = find_hold(&key, d.fence);
    } else {
      timer = places_.find(d.slot);
    }
    if (timer == nullptr || timer->deadline != d.deadline) continue;
    timers_.disarm(*timer);
    on_timer(*timer);
  }
}

bool TableState::is_quiet(const Key& key) const {
  const KeyExtras* const extras = key.find_extras();
  return extras != nullptr && extras->lag == lags_ && now_ < extras->quiet_until;
}

void TableState::on_timer(Timer& timer) {
  if (timer.kind == Timer::Kind::wait) {
    leave_queue(static_cast<QueuePlace&>(timer), Outcome::timeout);
    return;
  }
  Hold& hold = static_cast<Hold&>(timer);
  Key& key = *hold.key;
  end_hold(hold, EndCause::expired);
  grant_next(key);
}

void TableState::arm(Timer& timer, Duration after) {
  timers_.arm(timer, now_ + after);
  effects_.earliest = std::min(effects_.earliest, timer.deadline);
  if (!late_) return;
  if (KeyExtras* const extras = key_of(timer).find_extras()) {
    extras->quiet_until = std::min(extras->quiet_until, timer.deadline);
  }
}

// Keys.

Key& TableState::create(Kind kind, std::string_view name, KeyUnit unit) {
  std::unique_ptr<Key> key = Key::create(kind, name);
  index_.insert(key.get());
  unit.spend();
  return *key.release();
}

void TableState::forget(Key& key) {
  assert(key.idle());
  sessions_.forget_lapsed(key);
  idle_.remove(key);
  index_.remove(&key);
  delete &key;
}

void TableState::grant_next(Key& key) {
  if (!key.queue.empty()) grant_waiters(key);
  if (!key.idle()) return;
  key.drop_extras();
  idle_.add(key, now_);
}

void TableState::grant_waiters(Key& key) {
  while (!key.queue.empty()) {
    QueuePlace& place = *key.queue.front();
    if (is_over(place)) {
      give_up(place, (*set_of(place))->outcome);
      continue;
    }
    if (!key.fits(place.takes)) return;
    if (place.of_set) {
      effects_.sets.push_back(*set_of(place));  // its other keys decide, too
      return;
    }
    if (ending_ != 0 && place.holder.session_id() == ending_) {
      give_up(place, Outcome::cancelled);
      continue;
    }
    if (!fences_.has_next()) {
      give_up(place, Outcome::fences_exhausted);
      continue;
    }
    Enqueued* enqueued = nullptr;
    if (place.two_phase && place.listener == nullptr) {
      enqueued = sessions_.find_enqueued(place.holder.session_id(), &key);
      place.two_phase = false;  // from here on the hold is
    }
    Hold& hold = grant(place, fences_.last + 1);
    if (enqueued != nullptr) {
      enqueued->place = nullptr;
      enqueued->hold = &hold;
      hold.two_phase = true;
      sessions_.set_unacknowledged(hold, true);
    }
    settle(place, Outcome::ok, grant_of(hold));
    grant_same_owner(hold);
  }
}

// Holds.

Hold* TableState::find_hold(const Key* key, Fence fence) const {
  if (key == nullptr || key->holds.empty()) return nullptr;
  Hold* hold = key->holds.front();
  if (hold->fence == fence) return hold;
  return key->has_several() ? hold_index_.find(key, fence) : nullptr;
}

Hold* TableState::find_own(const Key& key, const Holder& holder) const {
  if (!holder.may_ask_again() || key.holds.empty()) return nullptr;
  if (key.has_several()) return hold_index_.find(&key, holder);
  Hold* hold = key.holds.front();
  return hold->holder.may_ask_again() && hold->holder.equals(holder) ? hold : nullptr;
}

Hold& TableState::grant(Key& key, const KeyRequest& request, Fence fence) {
  Hold& hold = grant(key, StoredHolder(request.holder), known_client(request, clients_),
                     takes_of(request), limits_.capped(request.ttl), fence);
  stats_.granted_at_once(hold, now_);
  return hold;
}

Hold& TableState::grant(QueuePlace& place, Fence fence) {
  unlink_owner(place);
  Hold& hold =
      grant(*place.key, std::move(place.holder), move_client(place), place.takes, place.ttl, fence);
  stats_.granted_from_queue(hold, place, now_);
  return hold;
}

Hold& TableState::grant(Key& key, StoredHolder holder, KnownClient client, std::uint32_t takes,
                        Duration ttl, Fence fence) {
  fences_.last = fence;
  Hold& hold = add_hold(key, std::move(holder), takes, fence, ttl);
  clients_.keep(hold, std::move(client));
  arm(hold, ttl);
  if (options_.events) effects_.events.push_back(granted(hold));
  return hold;
}

Hold& TableState::add_hold(Key& key, StoredHolder holder, std::uint32_t takes, Fence fence,
                           Duration ttl) {
  const bool first_is_free = !key.first.in_use;
  Hold* const hold = first_is_free ? &key.first : new Hold(&key);
  if (key.idle()) idle_.remove(key);
  hold->in_use = true;
  hold->takes = takes;
  hold->fence = fence;
  hold->ttl = ttl;
  hold->since = now_;
  hold->holder = std::move(holder);
  key.insert(*hold, replayed_);
  if (key.has_several()) hold_index_.insert(hold);
  sessions_.add(*hold);
  return *hold;
}

void TableState::remove_hold(Hold& hold) {
  Key& key = *hold.key;
  timers_.disarm(hold);
  if (key.has_several()) hold_index_.remove(&hold);
  limits_.holds().give_back(owner_of(hold));
  clients_.forget(hold);
  sessions_.remove(hold);
  key.erase(hold, fences_.raised);
  if (replayed_ == &hold) replayed_ = nullptr;
  if (&hold != &key.first) {
    delete &hold;
    return;
  }
  hold.in_use = hold.two_phase = hold.unacknowledged = hold.renewed = hold.slow = false;
  hold.holder = StoredHolder();
}

void TableState::move_deadline(Hold& hold, Time deadline) {
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

void TableState::extend(Hold& hold, Duration ttl) {
  hold.ttl = std::max(hold.ttl, limits_.capped(ttl));
  // The ttl of a recovered hold may be longer than ttl_max.
  move_deadline(hold, std::max(hold.deadline, now_ + limits_.capped(hold.ttl)));
}

void TableState::end_hold(Hold& hold, EndCause cause, const AdminNote& note) {
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
    Enqueued& enqueued = *sessions_.find_enqueued(hold.holder.session_id(), &key);
    const bool lapses = cause == EndCause::expired || cause == EndCause::revoked;
    lapses ? sessions_.lapse(enqueued) : sessions_.remove(enqueued);
  }
  remove_hold(hold);
}

bool TableState::take_over(Hold& hold, const Holder& asker) {
  if (!asker.is_secret()) return true;
  if (asker.session_id() < hold.holder.session_id()) return false;
  if (hold.two_phase) {
    sessions_.remove(*sessions_.find_enqueued(hold.holder.session_id(), hold.key));
    hold.two_phase = false;
  }
  sessions_.set_unacknowledged(hold, false);  // also after end_places(), which clears two_phase
  limits_.holds().detach_client(owner_of(hold));
  sessions_.remove(hold);
  hold.holder = StoredHolder(asker);
  limits_.holds().attach_client(asker);
  sessions_.add(hold);
  return true;
}

void TableState::leave_to_lease(Hold& hold) {
  limits_.holds().detach_client(hold.holder.view());
  sessions_.remove(hold);
}

Grant TableState::remaining_grant(const Hold& hold) const {
  Grant grant = grant_of(hold);
  grant.ttl = std::min(grant.ttl, hold.deadline - now_);
  return grant;
}

Event TableState::granted(const Hold& hold) const {
  return {.type = Event::Type::granted,
          .kind = hold.key->kind,
          .limit = hold.key->limit(),
          .first_limit = hold.key->first_limit(),
          .key = hold.key->name(),
          .holder = hold.holder.view(),
          .client = clients_.view_of(hold),
          .mode = hold.mode(),
          .permits = hold.permits(),
          .fence = hold.fence,
          .ttl = hold.ttl,
          .expires_at = hold.deadline};
}

Outcome TableState::why_not_held(const Key* key, const KeyHold& id) const {
  if (key == nullptr) return is_name(id.key) ? Outcome::expired : Outcome::invalid_key;
  if (key->holds.empty()) return Outcome::expired;
  if (find_hold(key, id.fence) != nullptr) return Outcome::not_holder;
  return key->holds.back()->fence > id.fence ? Outcome::stale : Outcome::not_holder;
}

Conflict TableState::explain(const Key& key, const Hold* hold) const {
  Conflict conflict{.limit = key.limit(),
                    .holders = key.holders,
                    .waiters = key.waiters(),
                    .permits = key.permits_in_use()};
  if (key.holds.empty()) return conflict;
  if (hold == nullptr) hold = key.holds.back();
  conflict.holder = hold->holder.display_name();
  conflict.session = hold->holder.session_id();
  conflict.client = clients_.of(*hold);
  conflict.fence = hold->fence;
  conflict.expires_at = hold->deadline;
  conflict.mode = hold->mode();
  return conflict;
}

// The queue.

QueuePlace* TableState::find_place(const Key& key, const Holder& holder) const {
  if (!holder.is_secret() || !holder.may_ask_again()) return nullptr;
  return places_.find(&key, holder);
}

QueuePlace& TableState::join(Key& key, const KeyRequest& request,
                             std::unique_ptr<QueuePlace> place) {
  place->key = &key;
  place->takes = takes_of(request);
  place->ttl = limits_.capped(request.ttl);
  place->since = now_;
  place->holder = StoredHolder(request.holder);
  KnownClient client = known_client(request, clients_);
  place->client = std::move(client.identity);
  place->client_from = client.from;
  places_.insert(place.get());
  link_owner(*place);
  if (key.idle()) idle_.remove(key);
  key.push_back(*place);
  ++stats_.waiters(key.kind);
  stats_.queued(*place);
  return *place.release();
}

void TableState::start_wait(QueuePlace& place, Duration wait, Listener* listener,
                            std::uint64_t id) {
  place.listener = listener;
  place.id = id;
  arm(place, wait);
}

void TableState::leave_queue(QueuePlace& place, Outcome why) {
  Key& key = *place.key;
  const QueuePlace* const head = key.queue.front();
  const bool was_head = head == &place || is_over(*head);
  give_up(place, why);
  if (was_head) grant_next(key);
}

void TableState::give_up(QueuePlace& place, Outcome why, const Grant& grant) {
  stats_.gave_up(place, why, now_);
  settle(place, why, grant);
}

// Notifies the listener that the wait is over, and removes the place.
void TableState::settle(QueuePlace& place, Outcome outcome, const Grant& grant) {
  if (place.listener != nullptr && (!place.of_set || end_set(place, outcome))) {
    effects_.wait_results.push_back({place.listener, place.id, outcome, grant, now_ - place.since});
  }
  remove_place(place);
}

// False if the set had ended before. Otherwise its other places have to be removed.
bool TableState::end_set(QueuePlace& place, Outcome why) {
  const std::shared_ptr<KeySet>& set = *set_of(place);
  if (!set->end(why)) return false;
  effects_.sets.push_back(set);
  return true;
}

void TableState::remove_place(QueuePlace& place) {
  Key& key = *place.key;
  if (place.of_set) {
    const SetPlace& member = static_cast<SetPlace&>(place);
    member.set->parts[member.part].place = nullptr;
  }
  unlink_owner(place);
  timers_.disarm(place);
  key.erase(place);
  --stats_.waiters(key.kind);
  places_.remove(&place);
  // A place that was granted has given its unit, its holder and its client to the hold.
  if (!place.holder.is_empty()) limits_.holds().give_back(place.holder.view());
  clients_.drop(move_client(place));
  delete_place(&place);
}

bool TableState::take_over(QueuePlace& place, const Holder& asker) {
  if (asker.session_id() < place.holder.session_id()) return false;
  if (place.listener != nullptr) {
    effects_.wait_results.push_back(
        {place.listener, place.id, Outcome::taken_over, {}, now_ - place.since});
    place.listener = nullptr;
    place.id = 0;
  }
  timers_.disarm(place);
  unlink_owner(place);
  place.two_phase = false;
  limits_.holds().detach_client(place.holder.view());
  place.holder = StoredHolder(asker);
  limits_.holds().attach_client(asker);
  link_owner(place);
  return true;
}

void TableState::grant_same_owner(Hold& hold) {
  if (hold.holder.is_secret()) return;
  for (QueuePlace* other : places_.all(hold.key, hold.holder.view())) {
    if (other->of_set) {
      effects_.sets.push_back(*set_of(*other));
    } else if (other->takes != hold.takes) {
      give_up(*other, mismatch_of(hold.key->kind));
    } else {
      hold.renewed = true;  // several callers have this grant: none of them can withdraw it
      give_up(*other, Outcome::ok, grant_of(hold));
    }
  }
}

void TableState::link_owner(QueuePlace& place) {
  places_.link_owner(&place);
  sessions_.add(place);
}

void TableState::unlink_owner(QueuePlace& place) {
  places_.unlink_owner(&place);
  sessions_.remove(place);
}

}  // namespace lockd
