#include "core/indexes.h"

#include <memory>

namespace lockd {

void HoldIndex::insert(Hold* hold) {
  by_fence_.emplace(std::pair(hold->key, hold->fence), hold);
  if (hold->holder.may_ask_again()) by_owner_.insert(hold);
}

void HoldIndex::remove(Hold* hold) {
  by_fence_.erase({hold->key, hold->fence});
  if (hold->holder.may_ask_again()) by_owner_.erase(hold);
}

Hold* HoldIndex::find(const Key* key, Fence fence) const {
  const auto found = by_fence_.find({key, fence});
  return found == by_fence_.end() ? nullptr : found->second;
}

Hold* HoldIndex::find(const Key* key, const Holder& owner) const {
  const auto found = by_owner_.find(OwnerAtKey(key, owner));
  return found == by_owner_.end() ? nullptr : *found;
}

void PlaceIndex::insert(QueuePlace* place) {
  if (!place->holder.may_ask_again()) return;
  places_[owner_of(place)].push_back(place);
}

void PlaceIndex::remove(QueuePlace* place) {
  if (!place->same_owner_peers.linked()) return;
  const auto found = places_.find(owner_of(place));
  Places left = std::move(found->second);
  const bool was_first = left.front() == place;
  left.remove(place);
  if (!was_first) {
    found->second = std::move(left);
    return;
  }
  places_.erase(found);  // what it goes by is the waiter's own, which goes
  if (!left.empty()) places_.emplace(owner_of(left.front()), std::move(left));
}

QueuePlace* PlaceIndex::find(const Key* key, const Holder& owner) const {
  const auto found = places_.find(OwnerAtKey(key, owner));
  return found == places_.end() ? nullptr : found->second.front();
}

std::vector<QueuePlace*> PlaceIndex::all(const Key* key, const Holder& owner) const {
  std::vector<QueuePlace*> all;
  const auto found = places_.find(OwnerAtKey(key, owner));
  if (found == places_.end()) return all;
  const Places& places = found->second;
  for (QueuePlace* w = places.front(); w != nullptr; w = places.next(w)) all.push_back(w);
  return all;
}

EnqueuedIndex::~EnqueuedIndex() {
  for (Enqueued* enqueued : all_) delete enqueued;
}

Enqueued* EnqueuedIndex::find(SessionId session, const Key* key) const {
  const auto found = all_.find(Id{session, key});
  return found == all_.end() ? nullptr : *found;
}

Enqueued* EnqueuedIndex::insert(SessionId session, Key* key) {
  auto enqueued = std::make_unique<Enqueued>();
  enqueued->session = session;
  enqueued->key = key;
  all_.insert(enqueued.get());
  return enqueued.release();
}

void EnqueuedIndex::remove(Enqueued* enqueued) {
  if (enqueued->lapsed_peers.linked()) {
    lapsed_.remove(enqueued);
    --lapsed_count_;
  }
  all_.erase(enqueued);
  delete enqueued;
}

Enqueued* EnqueuedIndex::lapse(Enqueued* enqueued) {
  enqueued->place = nullptr;
  enqueued->hold = nullptr;
  enqueued->key->has_lapsed = true;
  lapsed_.push_back(enqueued);
  return ++lapsed_count_ > kLapsedMax ? lapsed_.front() : nullptr;
}

Enqueued* EnqueuedIndex::find_lapsed(const Key* key) const {
  Enqueued* e = lapsed_.front();
  while (e != nullptr && e->key != key) e = lapsed_.next(e);
  return e;
}

}  // namespace lockd
