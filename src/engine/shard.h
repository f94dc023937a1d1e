// A LockTable behind a mutex. The thread that has a request executes it here.
//
// Under the lock: the operation, and handing its events to the journal, which copies them. So the
// journal's order is each shard's order. Nobody is told of anything under the lock, but an
// observer, which only takes note.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "core/lock_table.h"
#include "lockd/journal.h"
#include "lockd/observer.h"

namespace lockd {

// What a thread has done and not yet committed, over all shards.
struct Turn {
  Position& position;
  std::vector<WaitResult>& wait_results;
  Time earliest = Time::never();  // the earliest deadline set
};

// Aligned, so that two shards never share a cache line.
class alignas(64) Shard {
 public:
  // `journal` and `observer` may be null.
  Shard(const TableOptions& options, KeyBudget& budget, Journal* journal, Observer* observer)
      : journal_(journal), observer_(observer), table_(options, budget) {}

  // Executes `operation(LockTable&)` and takes over what it caused. Its answer rests on
  // `turn.position`, as does a refusal: it speaks of what the shard's last append has made true.
  template <typename Operation>
  auto run(Turn& turn, Operation operation) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    table_.observe(is_observed());
    const auto answer = operation(table_);
    collect(turn);
    return answer;
  }

  // Executes what has no effects.
  template <typename Operation>
  auto look(Operation operation) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return operation(table_);
  }

  // Ends what is due, at most `budget` steps of it. True when that was all.
  bool advance(Time now, int budget, Turn& turn) EXCLUDES(mutex_);

  // Appends the next few keys to the journal as they are and, when that was all, what the fences
  // have come to.
  void describe(Cursor& cursor, std::size_t keys_max) EXCLUDES(mutex_);

  // Begins every lease anew, and bases every answer on `from`, at least.
  void lead(Time now, Position from) EXCLUDES(mutex_);

  // No deadline here is earlier. Any thread may read it.
  Time due() const { return {due_ns_.load(std::memory_order_seq_cst)}; }

  // How often a key has become idle here. Any thread may read it.
  std::uint64_t idlings() const { return idlings_.load(std::memory_order_acquire); }
  // False only if none of those, as counted before, is idle now. Any thread may read it.
  bool may_have_idle() const { return may_have_idle_.load(std::memory_order_relaxed); }

 private:
  void collect(Turn& turn) REQUIRES(mutex_);
  bool is_observed() const { return observer_ != nullptr && observer_->is_looking(); }

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
