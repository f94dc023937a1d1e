#include "core/indexes.h"

#include <memory>

namespace lockd {

void HoldIndex::insert(Hold* hold) {
  by_fence_.emplace(std::pair(hold->semaphore, hold->fence), hold);
  if (hold->holder.may_ask_again()) by_owner_.insert(hold);
}

void HoldIndex::remove(Hold* hold) {
  by_fence_.erase({hold->semaphore, hold->fence});
  if (hold->holder.may_ask_again()) by_owner_.erase(hold);
}

Hold* HoldIndex::find(const Semaphore* semaphore, Fence fence) const {
  const auto found = by_fence_.find({semaphore, fence});
  return found == by_fence_.end() ? nullptr : found->second;
}

Hold* HoldIndex::find(const Semaphore* semaphore, const Holder& owner) const {
  const auto found = by_owner_.find(OwnerAtKey(semaphore, owner));
  return found == by_owner_.end() ? nullptr : *found;
}

void PlaceIndex::insert(Waiter* waiter) {
  if (!waiter->holder.may_ask_again()) return;
  places_[owner_of(waiter)].push_back(waiter);
}

void PlaceIndex::remove(Waiter* waiter) {
  if (!waiter->namesakes.linked()) return;
  const auto found = places_.find(owner_of(waiter));
  Places left = std::move(found->second);
  const bool was_first = left.front() == waiter;
  left.remove(waiter);
  if (!was_first) {
    found->second = std::move(left);
    return;
  }
  places_.erase(found);  // what it goes by is the waiter's own, which goes
  if (!left.empty()) places_.emplace(owner_of(left.front()), std::move(left));
}

Waiter* PlaceIndex::find(const Semaphore* semaphore, const Holder& owner) const {
  const auto found = places_.find(OwnerAtKey(semaphore, owner));
  return found == places_.end() ? nullptr : found->second.front();
}

std::vector<Waiter*> PlaceIndex::all(const Semaphore* semaphore, const Holder& owner) const {
  std::vector<Waiter*> all;
  const auto found = places_.find(OwnerAtKey(semaphore, owner));
  if (found == places_.end()) return all;
  const Places& places = found->second;
  for (Waiter* w = places.front(); w != nullptr; w = places.next(w)) all.push_back(w);
  return all;
}

EnqueuedIndex::~EnqueuedIndex() {
  for (Enqueued* enqueued : all_) delete enqueued;
}

Enqueued* EnqueuedIndex::find(SessionId session, const Semaphore* semaphore) const {
  const auto found = all_.find(Id{session, semaphore});
  return found == all_.end() ? nullptr : *found;
}

Enqueued* EnqueuedIndex::insert(SessionId session, Semaphore* semaphore) {
  auto enqueued = std::make_unique<Enqueued>();
  enqueued->session = session;
  enqueued->semaphore = semaphore;
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
  enqueued->waiter = nullptr;
  enqueued->hold = nullptr;
  enqueued->semaphore->has_lapsed = true;
  lapsed_.push_back(enqueued);
  return ++lapsed_count_ > kLapsedMax ? lapsed_.front() : nullptr;
}

Enqueued* EnqueuedIndex::find_lapsed(const Semaphore* semaphore) const {
  Enqueued* e = lapsed_.front();
  while (e != nullptr && e->semaphore != semaphore) e = lapsed_.next(e);
  return e;
}

}  // namespace lockd
