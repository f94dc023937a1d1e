// Several shards under their locks at once, for what concerns keys of several: the only place where
// a thread has more than one. They are taken in the order of the shards' numbers, so no two threads
// wait for each other.
#pragma once

#include <vector>

#include "engine/shard.h"
#include "lockd/batch.h"

namespace lockd {

class ShardLocks {
 public:
  // In the order of their numbers, none twice; at least one. What the operations on their tables
  // cause goes to the journal, the observer and `turn` when this goes.
  ShardLocks(std::vector<Shard*> shards, detail::Turn& turn);
  ~ShardLocks();
  ShardLocks(const ShardLocks&) = delete;
  ShardLocks& operator=(const ShardLocks&) = delete;

  static LockTable& table_of(Shard& shard) LOCKD_ANNOTATION(no_thread_safety_analysis) {
    return shard.table_;
  }

  // Appends what the tables have so far in one piece, of which a crash leaves all or none.
  void flush();

 private:
  const std::vector<Shard*> shards_;
  detail::Turn& turn_;
};

}  // namespace lockd
