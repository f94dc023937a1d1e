// Counts the calls that are under way, so that what they use does not go away under them.
//
// Thread-safe.
#pragma once

#include <condition_variable>

#include "base/mutex.h"

namespace lockd {

class InFlight {
 public:
  // One call, as long as it lives.
  class Call {
   public:
    explicit Call(InFlight& calls) : calls_(calls) {
      MutexLock lock(calls_.mutex_);
      ++calls_.count_;
    }
    ~Call() {
      // Notified under the lock: whoever waits cannot destroy the count before we are done with it.
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
