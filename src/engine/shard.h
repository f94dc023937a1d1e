// Shard: a LockTable behind a mutex. The thread of a request executes it here.
//
// The operation and the append of its events to the journal happen under the lock, so the journal
// has each shard's events in order. Only the observer is called under the lock; listeners are not.
// The change, the append and the transfer of wait results to the caller's Turn are noexcept, so
// they happen completely.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "core/lock_table.h"
#include "lockd/batch.h"
#include "lockd/journal.h"
#include "lockd/observer.h"

namespace lockd {

// Aligned, so that two shards never share a cache line.
class alignas(64) Shard {
 public:
  // Limits of the work under one lock of a shard: a fraction of a millisecond.
  static constexpr int kStepsPerLocking = 256;
  static constexpr std::size_t kKeysPerLocking = 256;

  // `journal` and `observer` may be null.
  Shard(const TableOptions& options, KeyBudget& budget, HoldBudget& holds, Journal* journal,
        Observer* observer)
      : journal_(journal), observer_(observer), table_(options, budget, &holds) {}

  // Locks the shard for its lifetime. The destructor passes the effects of all operations to the
  // journal, the observer and `turn`. All answers, also rejections, depend on `turn.position`,
  // because they disclose the state after the shard's last append.
  class LOCKD_ANNOTATION(scoped_lockable) Access {
   public:
    Access(Shard& shard, detail::Turn& turn) LOCKD_ANNOTATION(acquire_capability(shard.mutex_))
        LOCKD_ANNOTATION(no_thread_safety_analysis)
        : shard_(shard), turn_(turn) {
      shard_.mutex_.lock();
      shard_.table_.observe(shard_.observed());
    }
    ~Access() LOCKD_ANNOTATION(release_capability()) LOCKD_ANNOTATION(no_thread_safety_analysis) {
      shard_.collect(turn_);
      shard_.mutex_.unlock();
    }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

    LockTable* operator->() const { return &**this; }
    LockTable& operator*() const LOCKD_ANNOTATION(no_thread_safety_analysis) {
      return shard_.table_;
    }

   private:
    Shard& shard_;
    detail::Turn& turn_;
  };

  // Executes an operation without effects.
  template <typename Operation>
  auto with_table(Operation operation) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return operation(table_);
  }

  // Ends at most `budget` due leases and waits. If more are due, due() stays in the past.
  void advance(Time now, int budget, detail::Turn& turn) noexcept EXCLUDES(mutex_);

  // Appends events that describe the next keys, and after the last key the shard's largest fence.
  void describe(Cursor& cursor, std::size_t keys_max) noexcept EXCLUDES(mutex_);
  // An upper estimate of the bytes that describe() would append.
  std::size_t described_size(Cursor& cursor, std::size_t keys_max) EXCLUDES(mutex_);

  // See Journal::Source::lead().
  void lead(Time now, Position from, Duration lease_min) noexcept EXCLUDES(mutex_);

  // A lower bound of all deadlines of the shard. Thread-safe, like the next two.
  Time due() const { return {due_ns_.load(std::memory_order_seq_cst)}; }

  // How often a key of the shard has become idle.
  std::uint64_t idlings() const { return idlings_.load(std::memory_order_acquire); }
  // False only if every key that an earlier idlings() counted is in use or forgotten.
  bool may_have_idle() const { return may_have_idle_.load(std::memory_order_relaxed); }

 private:
  friend class ShardLocks;

  void collect(detail::Turn& turn) noexcept REQUIRES(mutex_);
  Observed observed() const {
    if (observer_ == nullptr) return Observed::nothing;
    return observer_->is_observing() ? Observed::everything : Observed::rare_events;
  }

  Journal* const journal_;
  Observer* const observer_;

  // Written under the mutex.
  std::atomic<std::uint64_t> due_ns_{0};  // unknown until the first advance()
  std::atomic<std::uint64_t> idlings_{0};
  std::atomic<bool> may_have_idle_{false};

  Mutex mutex_;
  LockTable table_ GUARDED_BY(mutex_);
  Position last_append_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lockd
