#include "engine/age_scanner.h"

#include <algorithm>
#include <utility>

namespace lockd::detail {
namespace {

// How often a call locks a shard at most.
constexpr std::size_t kLocksPerCall = 16;
// An interval scans an eighth of the last pass's entries, and at least kStepsMin.
constexpr std::size_t kStepsMin = 64 * 1024;
constexpr std::size_t kIntervalsPerPass = 8;

}  // namespace

Time AgeScanner::scan_some(Time now) {
  if (interval_ == Duration::zero()) return Time::never();
  MutexLock lock(mutex_);
  if (now < next_) return next_;
  if (steps_left_ == 0) steps_left_ = std::max(kStepsMin, last_steps_ / kIntervalsPerPass);
  Turn turn;
  for (std::size_t i = 0; i < kLocksPerCall && steps_left_ > 0; ++i) {
    Shard::Access(shards_[pass_.shard], turn)
        ->scan_ages(now, pass_.cursor, Shard::kKeysPerLocking, pass_.found);
    pass_.steps += Shard::kKeysPerLocking;
    steps_left_ -= std::min(steps_left_, Shard::kKeysPerLocking);
    if (!pass_.cursor.done) continue;
    pass_.cursor = {};
    if (++pass_.shard < shards_.size()) continue;
    oldest_ = std::move(pass_.found);
    last_steps_ = pass_.steps;
    pass_ = {};
    steps_left_ = 0;
  }
  if (steps_left_ == 0) next_ = now + interval_;
  return steps_left_ == 0 ? next_ : now;
}

Ages AgeScanner::ages(Time now) {
  const auto age_of = [now](const OldestEntries::Entry& entry) -> Ages::OldestEntry {
    if (entry.since >= now) return {entry.kind, entry.key, Duration::zero()};
    return {entry.kind, entry.key, now - entry.since};
  };
  MutexLock lock(mutex_);
  const OldestEntries::Queue& queue = oldest_.queue;
  return {.oldest_wait = age_of(oldest_.wait),
          .oldest_hold = age_of(oldest_.hold),
          .longest_queue = {queue.kind, queue.key, queue.waiters}};
}

}  // namespace lockd::detail
