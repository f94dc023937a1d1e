// The invariants, looked at one by one. Slow: for tests and simulation.
#include <cstdint>
#include <string>

#include "core/lock_table.h"

namespace lockd {
namespace {

std::string broken_rule(const char* invariant, const Key& key, const char* what) {
  return std::string(invariant) + ": key '" + std::string(key.name()) + "': " + what;
}

std::uint64_t taken_of(const Key& s) {
  std::uint64_t taken = 0;
  for (const Hold* h = s.holds.front(); h != nullptr; h = s.holds.next(h)) taken += h->takes;
  return taken;
}

// What belongs to one key, by its own account.
std::string check_key(const Key& s, Fence last_fence, std::uint32_t waiters_max) {
  // What was made smaller may have more, until they have gone.
  if (s.resized && (s.kind == Kind::lock || s.idle()))
    return broken_rule("holders-bounded", s, "resized, and idle or a lock");
  if (s.kind == Kind::lock && s.limit != 1)
    return broken_rule("holders-bounded", s, "a lock's limit");
  if (waiters_max != 0 && s.waiters > waiters_max)
    return broken_rule("bounded", s, "a queue too long");

  std::uint32_t holders = 0;
  const std::uint64_t taken = taken_of(s);
  Fence before = 0;
  for (const Hold* h = s.holds.front(); h != nullptr; h = s.holds.next(h), ++holders) {
    if (h->fence <= before) return broken_rule("fences-rise", s, "holds out of order");
    if (h->fence > last_fence) return broken_rule("fences-rise", s, "a fence from the future");
    if (!h->in_use || !h->armed())
      return broken_rule("lease-honoured", s, "a hold without a lease");
    before = h->fence;
  }
  if (taken > s.capacity() && !s.resized) {
    return s.kind == Kind::lock ? broken_rule("shares-or-alone", s, "held alone and by others")
                                : broken_rule("holders-bounded", s, "more permits than its limit");
  }
  if (!s.queue.empty() && !s.queue.front()->of_set &&
      taken + s.queue.front()->takes <= s.capacity())
    return broken_rule("no-idle-waiter", s, "room and a queue");
  if (holders != s.holders) return broken_rule("holders-bounded", s, "miscounted holders");
  if (s.first.in_use != (s.first.armed())) return broken_rule("lease-honoured", s, "a stray lease");

  std::uint32_t waiters = 0;
  Time since;
  for (const QueuePlace* w = s.queue.front(); w != nullptr; w = s.queue.next(w), ++waiters) {
    if (w->since < since) return broken_rule("first-come", s, "a queue out of order");
    if (w->armed() != (w->listener != nullptr))
      return broken_rule("settled-once", s, "a lost wait");
    if (w->listener == nullptr && !w->two_phase)
      return broken_rule("settled-once", s, "a lost place");
    since = w->since;
  }
  if (waiters != s.waiters) return broken_rule("bounded", s, "miscounted waiters");
  return {};
}

}  // namespace

std::string LockTable::check() const {
  std::string broken;
  std::size_t keys = 0;
  std::size_t waiters = 0;
  std::size_t session_holds = 0;
  std::size_t session_waiters = 0;
  std::size_t named_holds = 0;
  std::size_t idle = 0;
  std::size_t resized = 0;
  std::size_t extra = 0;
  std::size_t shared = 0;
  Stats there;
  Cursor cursor;
  index_.walk(cursor, SIZE_MAX, [&](const Key& s) {
    if (broken.empty()) broken = check_key(s, fence_, options_.waiters_max);
    if (broken.empty() && index_.find(s.kind, s.name()) != &s) broken = "bounded: a key not found";
    for (const Hold* h = s.holds.front(); h != nullptr; h = s.holds.next(h)) {
      session_holds += h->session_peers.linked();
      named_holds += h->client_from != ClientFrom::nowhere ? 1 : 0;
      if (broken.empty() && clients_.has(*h) != (h->client_from != ClientFrom::nowhere)) {
        broken = broken_rule("counted", s, "a hold whose client is known, or not");
      }
      if (broken.empty() && find_hold(&s, h->fence) != h)
        broken = "holders-bounded: a hold not found";
      if (broken.empty() && !behind_ && h->deadline <= now_) broken = "lease-honoured: overdue";
      const Enqueued* e = enqueued_.find(h->holder.session_id(), &s);
      if (broken.empty() && h->two_phase && (e == nullptr || e->hold != h)) {
        broken = broken_rule("settled-once", s, "a two-phase hold that its session does not know");
      }
    }
    for (const QueuePlace* w = s.queue.front(); w != nullptr; w = s.queue.next(w)) {
      session_waiters += w->session_peers.linked();
      if (broken.empty() && slots_.find(w->slot) != w) broken = "settled-once: a waiter not found";
      if (broken.empty() && w->same_owner_peers.linked() != w->holder.may_ask_again()) {
        broken = broken_rule("settled-once", s, "a place that its name does not know");
      }
      if (broken.empty() && w->of_set != sets_.contains(w)) broken = "all-or-none: a stray place";
      if (broken.empty() && !w->of_set && find_own(s, w->holder.view()) != nullptr) {
        broken = broken_rule("no-idle-waiter", s, "it waits behind its own hold");
      }
      if (broken.empty() && !behind_ && w->armed() && w->deadline <= now_) {
        broken = broken_rule("settled-once", s, "an overdue wait");
      }
    }
    idle += s.idle();
    resized += s.resized;
    if (broken.empty() && s.idle() != s.first.peers.linked() && !s.first.in_use) {
      broken = broken_rule("bounded", s, "idle, and not in the list of idle keys");
    }
    ++keys;
    waiters += s.waiters;
    extra += s.has_extra;
    shared += s.is_shared() ? s.holders : 0;
    if (broken.empty() && in_use(s) != taken_of(s)) {
      broken = broken_rule("holders-bounded", s, "miscounted permits");
    }
    const bool is_lock = s.kind == Kind::lock;
    (is_lock ? there.locks_held : there.semaphore_holders) += s.holders;
    (is_lock ? there.lock_waiters : there.semaphore_waiters) += s.waiters;
  });
  if (!broken.empty()) return broken;
  if (keys != index_.size()) return "bounded: miscounted keys";
  if (resized != first_limits_.size())
    return "holders-bounded: limits of keys that are not resized";
  if (extra != extra_permits_.size()) return "holders-bounded: permits of keys that have none";
  if (shared != shared_holds_) return "counted: shared holds";
  if (named_holds != clients_.holds()) return "counted: clients of holds that are over";
  if (waiters != slots_.size()) return "settled-once: miscounted waiters";
  const Stats acknowledged = stats();
  if (acknowledged.keys != keys || acknowledged.idle_keys != idle ||
      acknowledged.locks_held != there.locks_held ||
      acknowledged.semaphore_holders != there.semaphore_holders ||
      acknowledged.lock_waiters != there.lock_waiters ||
      acknowledged.semaphore_waiters != there.semaphore_waiters) {
    return "counted: the stats tell of what is not there";
  }

  const std::size_t holders = there.locks_held + there.semaphore_holders;
  if (units_.counts() && units_.in_use() != static_cast<std::int64_t>(holders + waiters)) {
    return "bounded: holds and places, and their units, do not add up";
  }

  // What the sessions have is what the keys know of, and nothing else.
  std::size_t enqueued = 0;
  for (const auto& [session, items] : sessions_) {
    std::size_t holds = 0;
    std::size_t unacknowledged = 0;
    for (const Hold* h = items.holds.front(); h != nullptr; h = items.holds.next(h)) {
      --session_holds;
      unacknowledged += h->unacknowledged ? 1 : 0;
      ++holds;
      if (h->holder.session_id() != session) return "settled-once: a hold of another session";
    }
    if (items.held != holds) return "counted: holds of a session";
    if (items.acknowledged != holds - unacknowledged)
      return "counted: holds that their session was told of";
    std::size_t places = 0;
    for (const QueuePlace* w = items.waiters.front(); w != nullptr; w = items.waiters.next(w)) {
      --session_waiters;
      ++places;
      if (w->holder.session_id() != session) return "settled-once: a place of another session";
    }
    if (items.places != places) return "counted: places of a session";
    for (const Enqueued* e = items.enqueued.front(); e != nullptr; e = items.enqueued.next(e)) {
      ++enqueued;
      if (e->place != nullptr && e->hold != nullptr) return "settled-once: both place and hold";
      const bool lapsed = e->place == nullptr && e->hold == nullptr;
      if (lapsed != e->lapsed_peers.linked()) return "settled-once: lapsed, or not";
      if (lapsed && !e->key->has_lapsed) return "bounded: lapsed, and its key does not know";
    }
  }
  if (session_holds != 0 || session_waiters != 0) return "settled-once: not in its session's list";
  if (enqueued != enqueued_.size()) return "settled-once: miscounted two-phase places";

  std::size_t listed = 0;
  Time since;
  for (const Hold* h = idle_.front(); h != nullptr; h = idle_.next(h), ++listed) {
    if (!h->key->idle() || h->in_use) return "bounded: in the idle list, and in use";
    if (h->since < since) return "bounded: the idle list is out of order";
    since = h->since;
  }
  if (listed != idle) return "bounded: miscounted idle keys";
  return {};
}

}  // namespace lockd
