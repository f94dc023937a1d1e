// LossNotifier: the holds whose owners must be notified of a loss, in order.
//
// Owners are notified without locks, and any thread may withdraw a hold meanwhile. One thread at a
// time calls notify_one(). Otherwise thread-safe.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace lockd {

template <class Hold>
class LossNotifier {
 public:
  void add(std::shared_ptr<Hold> hold) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    pending_.push_back(std::move(hold));
  }

  // Afterwards the owner is not being notified, unless the notification itself calls this, and will
  // not be before the next add(). Blocks while notify_one() notifies the owner on another thread,
  // so the caller must hold no lock that the owner may need.
  void withdraw(const Hold& hold) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    pending_.remove_if([&](const std::shared_ptr<Hold>& one) { return one.get() == &hold; });
    while (notifying_ == &hold && thread_ != std::this_thread::get_id()) finished_.wait(mutex_);
  }

  // Calls `notify` for the first hold, without locks. Returns false if there is none.
  template <class Notify>
  bool notify_one(Notify notify) EXCLUDES(mutex_) {
    std::shared_ptr<Hold> hold;
    {
      MutexLock lock(mutex_);
      if (pending_.empty()) return false;
      hold = std::move(pending_.front());
      pending_.pop_front();
      notifying_ = hold.get();
      thread_ = std::this_thread::get_id();
    }
    notify(*hold);
    MutexLock lock(mutex_);
    notifying_ = nullptr;
    finished_.notify_all();
    return true;
  }

 private:
  Mutex mutex_;
  std::condition_variable_any finished_;
  std::list<std::shared_ptr<Hold>> pending_ GUARDED_BY(mutex_);
  const Hold* notifying_ GUARDED_BY(mutex_) = nullptr;
  std::thread::id thread_ GUARDED_BY(mutex_);  // that notifies
};

}  // namespace lockd
