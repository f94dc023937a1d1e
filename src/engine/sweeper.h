// The thread that ends what falls due while nobody asks.
//
// It sleeps until the earliest deadline of any shard. Only a deadline earlier than the one it
// sleeps for wakes it, so on most calls it costs a comparison.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <thread>

#include "base/mutex.h"
#include "lockd/clock.h"

namespace lockd {

class Sweeper {
 public:
  // `sweep` does some of the work and returns when it is needed next: a time that has passed, if
  // there is more to do. No sleep is longer than `interval_max`: a clock that jumps, as over a
  // suspension of the machine, is noticed then.
  Sweeper(const Clock& clock, Duration interval_max, std::function<Time()> sweep);
  ~Sweeper();
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // A deadline has been set, and is visible to `sweep`.
  void notice(Time deadline) EXCLUDES(mutex_) {
    if (deadline.ns < wakes_at_ns_.load(std::memory_order_seq_cst)) wake();
  }

 private:
  void run() EXCLUDES(mutex_);
  void wake() EXCLUDES(mutex_);
  bool sleep(Time until) EXCLUDES(mutex_);

  const Clock& clock_;
  const Duration interval_max_;
  const std::function<Time()> sweep_;

  std::atomic<std::uint64_t> wakes_at_ns_{UINT64_MAX};  // or earlier, while it sweeps

  Mutex mutex_;
  std::condition_variable_any changed_;
  bool woken_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lockd
