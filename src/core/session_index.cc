#include "core/session_index.h"

namespace lockd {

SessionIndex::~SessionIndex() {
  for (Enqueued* enqueued : enqueued_) delete enqueued;
}

void SessionIndex::add(Hold& hold) {
  const SessionId session = hold.holder.session_id();
  if (session == 0) return;
  Items& items = items_[session];
  items.holds.push_back(&hold);
  ++items.hold_count;
  ++items.acknowledged;
}

void SessionIndex::remove(Hold& hold) {
  if (!hold.session_peers.linked()) return;
  Items& items = items_[hold.holder.session_id()];
  items.holds.remove(&hold);
  --items.hold_count;
  if (!hold.unacknowledged) --items.acknowledged;
}

void SessionIndex::add(QueuePlace& place) {
  const SessionId session = place.holder.session_id();
  if (session == 0) return;
  Items& items = items_[session];
  items.places.push_back(&place);
  ++items.place_count;
}

void SessionIndex::remove(QueuePlace& place) {
  if (!place.session_peers.linked()) return;
  const SessionId session = place.holder.session_id();
  Items& items = items_[session];
  items.places.remove(&place);
  --items.place_count;
  if (place.two_phase) remove(*find_enqueued(session, place.key));
}

void SessionIndex::set_unacknowledged(Hold& hold, bool unacknowledged) {
  if (hold.unacknowledged == unacknowledged) return;
  hold.unacknowledged = unacknowledged;
  std::size_t& acknowledged = items_[hold.holder.session_id()].acknowledged;
  unacknowledged ? --acknowledged : ++acknowledged;
}

Enqueued* SessionIndex::find_enqueued(SessionId session, const Key* key) const {
  const auto found = enqueued_.find(Id{session, key});
  return found == enqueued_.end() ? nullptr : *found;
}

Enqueued& SessionIndex::enqueue(SessionId session, Key& key) {
  auto* const enqueued = new Enqueued{.session = session, .key = &key};
  enqueued_.insert(enqueued);
  items_[session].enqueued.push_back(enqueued);
  return *enqueued;
}

void SessionIndex::remove(Enqueued& enqueued) {
  items_[enqueued.session].enqueued.remove(&enqueued);
  if (enqueued.lapsed_peers.linked()) {
    lapsed_.remove(&enqueued);
    --lapsed_count_;
  }
  enqueued_.erase(&enqueued);
  delete &enqueued;
}

void SessionIndex::lapse(Enqueued& enqueued) {
  enqueued.place = nullptr;
  enqueued.hold = nullptr;
  enqueued.key->has_lapsed = true;
  lapsed_.push_back(&enqueued);
  if (++lapsed_count_ > kLapsedMax) remove(*lapsed_.front());
}

void SessionIndex::forget_lapsed(const Key& key) {
  if (!key.has_lapsed) return;
  for (Enqueued* e = lapsed_.front(); e != nullptr;) {
    Enqueued* const next = lapsed_.next(e);
    if (e->key == &key) remove(*e);
    e = next;
  }
}

const SessionIndex::Items* SessionIndex::find(SessionId session) const {
  const auto found = items_.find(session);
  return found == items_.end() ? nullptr : &found->second;
}

bool SessionIndex::forget(SessionId session) {
  const auto found = items_.find(session);
  if (found == items_.end()) return true;
  const Items& items = found->second;
  if (!items.holds.empty() || !items.places.empty() || !items.enqueued.empty()) return false;
  items_.erase(found);
  return true;
}

Owned SessionIndex::owned(SessionId session) const {
  const Items* const items = find(session);
  if (items == nullptr) return {};
  return {.holds = items->hold_count, .places = items->place_count};
}

}  // namespace lockd
