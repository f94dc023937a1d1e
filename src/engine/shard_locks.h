// ShardLocks locks several shards, for operations on several keys. No other code locks more than
// one shard. The locks are taken in the order of the shards' numbers, which prevents deadlocks.
#pragma once

#include <vector>

#include "engine/shard.h"
#include "lockd/batch.h"

namespace lockd {

class ShardLocks {
 public:
  // Precondition: at least one shard, in the order of their numbers, without duplicates. The
  // destructor passes the effects of all operations to the journal, the observer and `turn`.
  ShardLocks(std::vector<Shard*> shards, detail::Turn& turn);
  ~ShardLocks();
  ShardLocks(const ShardLocks&) = delete;
  ShardLocks& operator=(const ShardLocks&) = delete;

  static LockTable& table_of(Shard& shard) LOCKD_ANNOTATION(no_thread_safety_analysis) {
    return shard.table_;
  }

  // Appends the tables' events so far in one call, so that a crash keeps all or none.
  void flush();

 private:
  const std::vector<Shard*> shards_;
  detail::Turn& turn_;
};

}  // namespace lockd
