// Counts the calls that are blocked in line, so that an engine does not go away under them.
#pragma once

#include <condition_variable>

#include "base/mutex.h"

namespace lockd {

class BlockedCalls {
 public:
  // One of them, as long as it lives.
  class Member {
   public:
    explicit Member(BlockedCalls& calls) : calls_(calls) {
      MutexLock lock(calls_.mutex_);
      ++calls_.count_;
    }
    ~Member() {
      // Notified under the lock: whoever waits cannot destroy the count before we are done with it.
      MutexLock lock(calls_.mutex_);
      if (--calls_.count_ == 0) calls_.none_left_.notify_all();
    }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    BlockedCalls& calls_;
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
