#include "core/indexes.h"

#include <memory>

namespace lockd {

void HoldIndex::insert(Hold* hold) {
  by_fence_.emplace(std::pair(hold->key, hold->fence), hold);
  if (hold->key->kind == Kind::lock) ++shared_;
  if (hold->holder.may_ask_again()) by_owner_.insert(hold);
}

void HoldIndex::remove(Hold* hold) {
  by_fence_.erase({hold->key, hold->fence});
  if (hold->key->kind == Kind::lock) --shared_;
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
  if (free_.empty()) {
    place->slot = slots();
    slots_.push_back(place);
  } else {
    place->slot = free_.back();
    free_.pop_back();
    slots_[place->slot] = place;
  }
}

void PlaceIndex::remove(const QueuePlace* place) {
  slots_[place->slot] = nullptr;
  free_.push_back(place->slot);
  // Gives back the memory of a large queue once it has dissolved.
  if (size() == 0 && slots_.size() > 1024) {
    slots_ = {};
    free_ = {};
  }
}

void PlaceIndex::link_owner(QueuePlace* place) {
  if (place->holder.may_ask_again()) by_owner_[owner_of(place)].push_back(place);
}

void PlaceIndex::unlink_owner(QueuePlace* place) {
  if (!place->same_owner_peers.linked()) return;
  const auto found = by_owner_.find(owner_of(place));
  Places left = std::move(found->second);
  const bool was_first = left.front() == place;
  left.remove(place);
  if (!was_first) {
    found->second = std::move(left);
    return;
  }
  by_owner_.erase(found);  // its key refers to the holder of the place that leaves
  if (!left.empty()) by_owner_.emplace(owner_of(left.front()), std::move(left));
}

QueuePlace* PlaceIndex::find(const Key* key, const Holder& owner) const {
  const auto found = by_owner_.find(OwnerAtKey(key, owner));
  return found == by_owner_.end() ? nullptr : found->second.front();
}

std::vector<QueuePlace*> PlaceIndex::all(const Key* key, const Holder& owner) const {
  std::vector<QueuePlace*> all;
  const auto found = by_owner_.find(OwnerAtKey(key, owner));
  if (found == by_owner_.end()) return all;
  const Places& places = found->second;
  for (QueuePlace* w = places.front(); w != nullptr; w = places.next(w)) all.push_back(w);
  return all;
}

}  // namespace lockd
