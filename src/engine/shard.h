// A LockTable behind a mutex. The thread that has a request executes it here.
//
// Under the lock: the operation, and handing its events to the journal, which copies them. So the
// journal's order is each shard's order. Nobody is told of anything under the lock, but an
// observer, which only takes note. From the change to the append, and to the results of waits in
// the caller's Turn, all is noexcept, as it is in the table: none of it happens without the rest.
#pragma once

#include <atomic>
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
  // `journal` and `observer` may be null.
  Shard(const TableOptions& options, KeyBudget& budget, HoldBudget& holds, Journal* journal,
        Observer* observer)
      : journal_(journal), observer_(observer), table_(options, budget, &holds) {}

  // The table, under the shard's lock for as long as this lives. What the operations through it
  // cause goes to the journal, the observer and `turn` when it goes. Their answers rest on
  // `turn.position`, as do refusals: they speak of what the shard's last append has made true.
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

  // Executes what has no effects.
  template <typename Operation>
  auto look(Operation operation) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return operation(table_);
  }

  // Ends what is due, at most `budget` steps of it. When that was not all, due() has passed.
  void advance(Time now, int budget, detail::Turn& turn) noexcept EXCLUDES(mutex_);

  // Appends the next few keys to the journal as they are and, when that was all, what the fences
  // have come to.
  void describe(Cursor& cursor, std::size_t keys_max) noexcept EXCLUDES(mutex_);
  // How many bytes that would be, about, and no less.
  std::size_t described_size(Cursor& cursor, std::size_t keys_max) EXCLUDES(mutex_);

  // Begins every lease anew, and bases every answer on `from`, at least.
  void lead(Time now, Position from, Duration lease_min) noexcept EXCLUDES(mutex_);

  // No deadline here is earlier. Any thread may read it.
  Time due() const { return {due_ns_.load(std::memory_order_seq_cst)}; }

  // How often a key has become idle here. Any thread may read it.
  std::uint64_t idlings() const { return idlings_.load(std::memory_order_acquire); }
  // False only if none of those, as counted before, is idle now. Any thread may read it.
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
