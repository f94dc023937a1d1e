// What the operations are made of: what falls due, and how keys and holds begin and end.
#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include "base/text.h"
#include "core/lock_table.h"

namespace lockd {

LockTable::~LockTable() {
  Cursor cursor;
  std::vector<Semaphore*> all;
  index_.walk(cursor, index_.size() + 1, [&](Semaphore& s) { all.push_back(&s); });
  for (Semaphore* s : all) {
    while (Waiter* waiter = s->line.pop_front()) delete waiter;
    while (Hold* hold = s->holds.pop_front()) {
      if (hold != &s->first) delete hold;
    }
    budget_.give_back();
    delete s;
  }
}

// Time.

void LockTable::arm(Timer& timer, Duration after) {
  timers_.arm(timer, now_ + after);
  effects_.earliest = std::min(effects_.earliest, timer.deadline);
}

void LockTable::run_out(Timer& timer) {
  if (timer.what == Timer::What::wait) {
    give_up(static_cast<Waiter&>(timer), Outcome::timeout);
    return;
  }
  Hold& hold = static_cast<Hold&>(timer);
  Semaphore& semaphore = *hold.semaphore;
  end_hold(hold, EndCause::expired);
  pass_on(semaphore);
}

// One timer of a key that is due. Named, not pointed to: what runs out first can end what follows.
struct LockTable::Due {
  Time deadline;
  Timer::What what;
  Fence fence;
  std::uint32_t slot;
};

// Brings one key up to date while the table as a whole is behind, in the order in which advance()
// would have come to it.
void LockTable::catch_up(Semaphore& semaphore) {
  std::vector<Due> due;
  for (const Hold* h = semaphore.holds.front(); h != nullptr; h = semaphore.holds.next(h)) {
    if (h->deadline <= now_) due.push_back({h->deadline, h->what, h->fence, 0});
  }
  for (const Waiter* w = semaphore.line.front(); w != nullptr; w = semaphore.line.next(w)) {
    if (w->armed() && w->deadline <= now_) due.push_back({w->deadline, w->what, 0, w->slot});
  }
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

// Keys.

// Precondition: it will be granted at once; a key that nobody has held or waited for is not kept.
Outcome LockTable::create(Kind kind, std::string_view key, KeyUnit spare, Semaphore** created) {
  if (!is_name(key)) return Outcome::invalid_key;  // those that are there have been looked at
  KeyUnit unit = spare ? std::move(spare) : budget_.take();
  if (!unit) return Outcome::max_keys;
  std::unique_ptr<Semaphore> semaphore = Semaphore::create(kind, key);
  index_.insert(semaphore.get());
  unit.spend();
  *created = semaphore.release();
  return Outcome::ok;
}

void LockTable::forget(Semaphore& semaphore) {
  assert(semaphore.idle());
  while (semaphore.has_lapsed) {
    Enqueued* lapsed = enqueued_.find_lapsed(&semaphore);
    if (lapsed == nullptr) break;
    drop(*lapsed);
  }
  if (semaphore.first.peers.linked()) {
    idle_.remove(&semaphore.first);
    --idle_keys_;
  }
  index_.remove(&semaphore);
  delete &semaphore;
}

std::size_t LockTable::forget_idle(Time since, std::size_t keys_max) {
  std::size_t forgotten = 0;
  while (forgotten < keys_max && !idle_.empty() && idle_.front()->since <= since) {
    forget(*idle_.front()->semaphore);
    budget_.give_back();
    ++forgotten;
  }
  return forgotten;
}

KeyUnit LockTable::reclaim_idle() {
  if (idle_.empty()) return {};
  forget(*idle_.front()->semaphore);
  return budget_.take_over();
}

// After a hold has ended: the line moves up, or the key is idle.
void LockTable::pass_on(Semaphore& semaphore) {
  promote(semaphore);
  if (semaphore.idle()) {
    semaphore.first.since = now_;
    idle_.push_back(&semaphore.first);
    ++idle_keys_;
    ++idlings_;
  }
}

// Holds.

Hold* LockTable::find_hold(const Semaphore* semaphore, Fence fence) const {
  if (semaphore == nullptr || semaphore->holds.empty()) return nullptr;
  Hold* hold = semaphore->holds.front();
  if (hold->fence == fence) return hold;
  if (semaphore->kind == Kind::lock) return nullptr;
  return hold_index_.find(semaphore, fence);
}

// The hold of a name. Secrets are made for one grant each, so a secret has none before it.
Hold* LockTable::find_named(const Semaphore& semaphore, const Holder& holder) const {
  if (holder.is_secret() || semaphore.holds.empty()) return nullptr;
  Hold* first = semaphore.holds.front();
  if (first->holder.equals(holder)) return first;
  if (semaphore.kind == Kind::lock) return nullptr;
  return hold_index_.find(&semaphore, holder.name());
}

Hold& LockTable::add_hold(Semaphore& semaphore, StoredHolder holder, Fence fence, Duration ttl) {
  const bool first_is_free = !semaphore.first.in_use;
  Hold* hold = first_is_free ? &semaphore.first : new Hold(&semaphore);
  if (semaphore.first.peers.linked() && first_is_free) {
    idle_.remove(&semaphore.first);
    --idle_keys_;
  }
  hold->in_use = true;
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
  if (semaphore.kind == Kind::semaphore) hold_index_.insert(hold);
  if (const SessionId session = hold->holder.session_id(); session != 0) {
    sessions_[session].holds.push_back(hold);
  }
  return *hold;
}

void LockTable::remove_hold(Hold& hold) {
  Semaphore& semaphore = *hold.semaphore;
  timers_.disarm(hold);
  if (semaphore.kind == Kind::semaphore) hold_index_.remove(&hold);
  if (hold.session_peers.linked()) sessions_[hold.holder.session_id()].holds.remove(&hold);
  semaphore.holds.remove(&hold);
  if (replayed_ == &hold) replayed_ = nullptr;
  --semaphore.holders;
  if (&hold != &semaphore.first) {
    delete &hold;
    return;
  }
  hold.in_use = hold.two_phase = hold.untold = hold.renewed = false;
  hold.holder = StoredHolder();
}

Hold& LockTable::grant(Semaphore& semaphore, StoredHolder holder, Duration ttl) {
  Hold& hold = add_hold(semaphore, std::move(holder), ++fence_, ttl);
  arm(hold, ttl);
  if (options_.events) effects_.events.push_back(granted(hold));
  return hold;
}

Grant LockTable::grant_of(const Hold& hold) {
  return {hold.fence, hold.ttl, hold.deadline, hold.holder.view().secret()};
}

Event LockTable::granted(const Hold& hold) {
  return {.type = Event::Type::granted,
          .kind = hold.semaphore->kind,
          .limit = hold.semaphore->limit,
          .key = hold.semaphore->key(),
          .holder = hold.holder.view(),
          .fence = hold.fence,
          .ttl = hold.ttl,
          .expires_at = hold.deadline};
}

void LockTable::refresh(Hold& hold, Duration ttl) {
  arm(hold, ttl);
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

// Leaves the slot free: pass_on() must follow.
void LockTable::end_hold(Hold& hold, EndCause cause) {
  Semaphore& semaphore = *hold.semaphore;
  stats_.ended(hold, cause, now_);
  if (options_.events) {
    effects_.events.push_back({.type = Event::Type::ended,
                               .kind = semaphore.kind,
                               .cause = cause,
                               .key = semaphore.key(),
                               .fence = hold.fence});
  }
  if (hold.two_phase) {
    Enqueued* enqueued = enqueued_.find(hold.holder.session_id(), &semaphore);
    if (cause != EndCause::expired) {
      drop(*enqueued);
    } else if (Enqueued* oldest = enqueued_.lapse(enqueued)) {
      drop(*oldest);
    }
  }
  remove_hold(hold);
}

Outcome LockTable::why_not(const Semaphore* semaphore, const HoldId& id) const {
  if (semaphore == nullptr) return is_name(id.key) ? Outcome::expired : Outcome::invalid_key;
  if (semaphore->holds.empty()) return Outcome::expired;
  if (find_hold(semaphore, id.fence) != nullptr) return Outcome::not_holder;
  return semaphore->holds.back()->fence > id.fence ? Outcome::stale : Outcome::not_holder;
}

}  // namespace lockd
