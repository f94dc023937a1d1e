// Sweeper: a thread that calls a function at deadlines.
//
// It sleeps until the earliest deadline. notice() wakes it only for an earlier deadline, so most
// calls cost one comparison.
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
  // `sweep` does a bounded amount of work and returns the time of its next call: a past time if
  // there is more to do. No sleep is longer than `interval_max`, which bounds the reaction to a
  // clock that jumps, as after a suspension of the machine.
  Sweeper(const Clock& clock, Duration interval_max, std::function<Time()> sweep);
  ~Sweeper();
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // Call this after setting a deadline that `sweep` can see.
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

  std::atomic<std::uint64_t> wakes_at_ns_{UINT64_MAX};  // during a sweep: the latest possible time

  Mutex mutex_;
  std::condition_variable_any changed_;
  bool woken_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: uses all of the above
};

}  // namespace lockd
