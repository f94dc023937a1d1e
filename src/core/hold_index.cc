#include "core/hold_index.h"

namespace lockd {

void HoldIndex::insert(Hold* hold) {
  by_fence_.emplace(std::pair(hold->semaphore, hold->fence), hold);
  if (!hold->holder.is_secret()) by_name_.insert(hold);
}

void HoldIndex::remove(Hold* hold) {
  by_fence_.erase({hold->semaphore, hold->fence});
  if (!hold->holder.is_secret()) by_name_.erase(hold);
}

Hold* HoldIndex::find(const Semaphore* semaphore, Fence fence) const {
  const auto found = by_fence_.find({semaphore, fence});
  return found == by_fence_.end() ? nullptr : found->second;
}

Hold* HoldIndex::find(const Semaphore* semaphore, std::string_view name) const {
  const auto found = by_name_.find(Name{semaphore, name});
  return found == by_name_.end() ? nullptr : *found;
}

}  // namespace lockd
