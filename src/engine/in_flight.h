// InFlight counts running calls, so that an owner can wait for them before it destroys what they
// use. Thread-safe.
#pragma once

#include <condition_variable>

#include "base/mutex.h"

namespace lockd {

class InFlight {
 public:
  // Counts as one call for its lifetime.
  class Call {
   public:
    explicit Call(InFlight& calls) : calls_(calls) {
      MutexLock lock(calls_.mutex_);
      ++calls_.count_;
    }
    ~Call() {
      // Notifies under the lock, so that the waiting thread cannot destroy the InFlight too early.
      MutexLock lock(calls_.mutex_);
      if (--calls_.count_ == 0) calls_.none_left_.notify_all();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    InFlight& calls_;
  };

  void wait_until_none() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (count_ != 0) none_left_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  std::condition_variable_any none_left_;
  int count_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lockd
