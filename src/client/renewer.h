// The background thread of a client: renews what is held, and notifies owners of what is lost.
//
// A turn of it: advance each Renewal that is ready or due, notify one owner, or wait until a socket
// is ready or the earliest deadline has come, by a timer that also runs while the machine is
// suspended. No owner is notified under the lock. All signals are blocked on it: they are for the
// program's own threads.
//
// It lives for as long as anybody holds a shared_ptr to it, a client or what was acquired, and may
// be let go of on any thread, its own included.
#pragma once

#include <poll.h>

#include <list>
#include <memory>
#include <thread>
#include <vector>

#include "base/loss_notifier.h"
#include "base/mutex.h"
#include "client/hold.h"
#include "client/line_connection.h"
#include "client/renewal.h"
#include "lockd/client/held_lock.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

class Renewer {
 public:
  // Throws std::system_error when the system gives no thread or no descriptors.
  static std::shared_ptr<Renewer> start(Duration release_timeout);

  ~Renewer();
  Renewer(const Renewer&) = delete;
  Renewer& operator=(const Renewer&) = delete;

  // Takes over a hold, with the connection on which it was granted.
  static HeldLock keep(const std::shared_ptr<Renewer>& renewer, std::shared_ptr<Hold> hold,
                       std::unique_ptr<LineConnection> connection);
  // See HeldLock::release(). By the owner, on the thread that has it.
  Status release(Hold& hold) EXCLUDES(mutex_);

 private:
  struct Watch {
    std::vector<pollfd> descriptors;
    std::vector<int> ready;  // of them, sorted
    BootClock::time_point until;
  };

  explicit Renewer(Duration release_timeout);
  void stop() EXCLUDES(mutex_);
  void run() EXCLUDES(mutex_);
  // False when it is time to stop.
  bool advance_all(Watch& watch) EXCLUDES(mutex_);
  // Returns false if there is no owner to notify.
  bool notify_one() EXCLUDES(mutex_);
  void wait(Watch& watch) const;
  void wake() const;

  std::unique_ptr<LineConnection> withdraw(Hold& hold) EXCLUDES(mutex_);
  Status tell_server(Hold& hold, std::unique_ptr<LineConnection> connection) const;
  bool on_own_thread() const { return std::this_thread::get_id() == thread_id_; }

  const Duration release_timeout_;
  const int wake_fd_;  // an eventfd: something has changed
  const int timer_;    // a timerfd of CLOCK_BOOTTIME

  LossNotifier<Hold> losses_;  // lost holds and suspect ones
  Mutex mutex_;
  std::list<Renewal> renewals_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::thread thread_;           // written by start() and stop() only
  std::thread::id thread_id_{};  // constant once started
};

}  // namespace lockd::client
