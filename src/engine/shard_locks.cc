#include "engine/shard_locks.h"

#include <utility>

namespace lockd {

ShardLocks::ShardLocks(std::vector<Shard*> shards, detail::Turn& turn)
    LOCKD_ANNOTATION(no_thread_safety_analysis)
    : shards_(std::move(shards)), turn_(turn) {
  for (Shard* shard : shards_) {
    shard->mutex_.lock();
    shard->table_.observe(shard->observed());
  }
}

ShardLocks::~ShardLocks() LOCKD_ANNOTATION(no_thread_safety_analysis) {
  flush();
  for (Shard* shard : shards_) {
    shard->collect(turn_);
    shard->mutex_.unlock();
  }
}

void ShardLocks::flush() LOCKD_ANNOTATION(no_thread_safety_analysis) {
  std::vector<Event> events;
  for (Shard* shard : shards_) {
    const std::vector<Event>& its = shard->table_.effects().events;
    events.insert(events.end(), its.begin(), its.end());
  }
  if (events.empty()) return;
  Journal* const journal = shards_.front()->journal_;
  const Position position = journal == nullptr ? 0 : journal->append(events);
  for (Shard* shard : shards_) {
    std::vector<Event>& its = shard->table_.effects().events;
    if (!its.empty() && journal != nullptr) shard->last_append_ = position;
    its.clear();
  }
}

}  // namespace lockd
