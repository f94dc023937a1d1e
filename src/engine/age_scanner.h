// AgeScanner finds the oldest wait, the oldest hold and the longest queue of all shards.
//
// A pass over all shards is spread over several intervals if there are many entries, and an
// interval's share over several sweeps, so that a pass delays neither requests nor expiries.
//
// Thread-safe.
#pragma once

#include <cstddef>

#include "base/mutex.h"
#include "core/lock_table.h"
#include "engine/shards.h"
#include "lockd/engine.h"

namespace lockd::detail {

class AgeScanner {
 public:
  // Never scans if `interval` is zero.
  AgeScanner(const Shards& shards, Duration interval) : shards_(shards), interval_(interval) {}

  // Scans the next entries. Returns the time of the next call.
  Time scan_some(Time now) EXCLUDES(mutex_);

  // What the last complete pass found, with ages at `now`.
  Ages ages(Time now) EXCLUDES(mutex_);

 private:
  struct Pass {
    std::size_t shard = 0;
    AgeCursor cursor{};
    OldestEntries found{};
    std::size_t steps = 0;
  };

  const Shards& shards_;
  const Duration interval_;

  Mutex mutex_;
  Pass pass_ GUARDED_BY(mutex_);
  std::size_t steps_left_ GUARDED_BY(mutex_) = 0;  // in this interval
  std::size_t last_steps_ GUARDED_BY(mutex_) = 0;  // of the last complete pass
  Time next_ GUARDED_BY(mutex_);
  OldestEntries oldest_ GUARDED_BY(mutex_);  // found by the last complete pass
};

}  // namespace lockd::detail
