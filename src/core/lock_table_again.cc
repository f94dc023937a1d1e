// Asking again. A client that has lost its connection does not know what became of its request: it
// asks by the same name, or the same secret, and gets what is there.
#include <algorithm>

#include "core/lock_table.h"

namespace lockd {

Hold* LockTable::find_own(const Key& key, const Holder& holder) const {
  if (!holder.may_ask_again() || key.holds.empty()) return nullptr;
  if (key.has_several()) return hold_index_.find(&key, holder);
  Hold* hold = key.holds.front();
  return hold->holder.may_ask_again() && hold->holder.equals(holder) ? hold : nullptr;
}

// Of a secret. A name may have several places: each is a call of its own.
QueuePlace* LockTable::find_place(const Key& key, const Holder& holder) const {
  if (!holder.is_secret() || !holder.may_ask_again()) return nullptr;
  return places_.find(&key, holder);
}

// Whether a request may name these, and who asks again names what it did before; or why not.
Outcome LockTable::compare_request(const Key& key, std::uint32_t limit, std::uint32_t takes,
                                   const Hold* own, const QueuePlace* place) {
  if (!matches(key, limit, own == nullptr ? takes : 0)) {
    return stats_.refused(Outcome::limit_mismatch);
  }
  const bool differs =
      (own != nullptr && own->takes != takes) || (place != nullptr && place->takes != takes);
  return differs ? mismatch(key.kind) : Outcome::ok;
}

LockTable::Reply LockTable::grant_again(Hold& own, Duration ttl) {
  extend(own, ttl);
  return {Outcome::ok, remaining_grant(own)};
}

// Neither the hold's own ttl nor its deadline moves back: the reply to the first request may have
// arrived, and its client counts on that lease.
void LockTable::extend(Hold& own, Duration ttl) {
  own.ttl = std::max(own.ttl, capped(ttl));
  move_deadline(own, std::max(own.deadline, now_ + capped(own.ttl)));
}

// Says at most what remains, also where ttl_max ended the lease of a recovered hold earlier.
Grant LockTable::remaining_grant(const Hold& own) const {
  Grant grant = grant_of(own);
  grant.ttl = std::min(grant.ttl, own.deadline - now_);
  return grant;
}

LockTable::Reply LockTable::resume(QueuePlace& place, const AcquireRequest& request,
                                   Listener* listener, std::uint64_t id) {
  const bool waits = request.wait > Duration::zero();
  if (waits && listener == nullptr) return {Outcome::held};  // it will ask again, to wait
  if (!take_over(place, request.holder)) return {Outcome::taken_over};
  if (!waits) {
    leave_queue(place, Outcome::timeout);
    return {Outcome::timeout};
  }
  place.ttl = capped(request.ttl);
  place.listener = listener;
  place.id = id;
  arm(place, request.wait);
  return {Outcome::queued, {}, place.slot};
}

// Nothing if it has neither a hold nor a place, or has them by another secret than this.
std::optional<LockTable::Reply> LockTable::enqueue_again(Key& key, const EnqueueRequest& request) {
  Hold* const own = find_own(key, request.holder);
  QueuePlace* const place = find_place(key, request.holder);
  if (own == nullptr && place == nullptr) return {};
  const SessionId session = request.holder.session_id();
  Enqueued* const other = enqueued_.find(session, &key);
  if (other != nullptr && !other->lapsed_peers.linked() &&
      (other->hold != own || other->place != place)) {
    return Reply{Outcome::already_enqueued};
  }
  if (Outcome no = compare_request(key, request.limit, takes_of(request), own, place);
      no != Outcome::ok) {
    return Reply{no};
  }
  const bool is_its =
      own == nullptr ? take_over(*place, request.holder) : take_over(*own, request.holder);
  if (is_its) {
    if (Enqueued* lapsed = enqueued_.find(session, &key)) drop(*lapsed);
    Enqueued& enqueued = begin_two_phase(session, key);
    enqueued.hold = own;
    enqueued.place = place;
    if (own != nullptr) own->two_phase = true;
    if (place != nullptr) place->two_phase = true;
  }
  if (own != nullptr) return grant_again(*own, request.ttl);
  if (!is_its) return Reply{Outcome::taken_over};
  place->ttl = capped(request.ttl);
  return Reply{Outcome::queued, {}, place->slot};
}

// Whether the hold is the asker's now: a session that came later keeps it.
bool LockTable::take_over(Hold& hold, const Holder& asker) {
  if (!asker.is_secret()) return true;
  if (asker.session_id() < hold.holder.session_id()) return false;
  if (hold.two_phase) {
    drop(*enqueued_.find(hold.holder.session_id(), hold.key));
    hold.two_phase = false;
    mark(hold, /*unacknowledged=*/false);
  }
  units_.detach_client(owner_of(hold));
  leave_session(hold);
  hold.holder = StoredHolder(asker);
  units_.attach_client(asker);
  join_session(hold);
  return true;
}

// Likewise. Whoever waited there does so no more.
bool LockTable::take_over(QueuePlace& place, const Holder& asker) {
  if (asker.session_id() < place.holder.session_id()) return false;
  if (place.listener != nullptr) {
    effects_.wait_results.push_back(
        {place.listener, place.id, Outcome::taken_over, {}, now_ - place.since});
    place.listener = nullptr;
    place.id = 0;
  }
  timers_.disarm(place);
  leave_owner(place);
  place.two_phase = false;
  units_.detach_client(place.holder.view());
  place.holder = StoredHolder(asker);
  units_.attach_client(asker);
  join_owner(place);
  return true;
}

}  // namespace lockd
