#include "cluster/channel_ids.h"

#include <algorithm>
#include <iterator>

namespace lockd {

void ChannelIds::reserve(std::uint64_t now_ms) {
  MutexLock lock(mutex_);
  // While no client has come, the last block serves.
  if (blocks_.empty() || last_.load() + 1 != blocks_.back().end) add_block(now_ms);
}

void ChannelIds::add_block(std::uint64_t now_ms) {
  const SessionId first = last_.fetch_add(kBlockSize) + 1;
  blocks_.push_back({.since_ms = now_ms, .next = first, .end = first + kBlockSize});
  // The first block stays: for clients that connected before all that is remembered.
  if (blocks_.size() > kBlocksMax) blocks_.erase(blocks_.begin() + 1);
}

SessionId ChannelIds::take(std::uint64_t connected_ms) {
  MutexLock lock(mutex_);
  if (blocks_.empty()) add_block(connected_ms);
  const auto later =
      std::upper_bound(blocks_.begin(), blocks_.end(), connected_ms,
                       [](std::uint64_t at, const Block& block) { return at < block.since_ms; });
  const auto has_ids = [](const Block& block) { return block.next != block.end; };
  // Its own block, or the last one before it that has ids left, or else the first one after it.
  auto found = std::find_if(std::make_reverse_iterator(later), blocks_.rend(), has_ids);
  if (found != blocks_.rend()) return found->next++;
  const auto next = std::find_if(later, blocks_.end(), has_ids);
  if (next != blocks_.end()) return next->next++;
  add_block(std::max(connected_ms, blocks_.back().since_ms));
  return blocks_.back().next++;
}

}  // namespace lockd
