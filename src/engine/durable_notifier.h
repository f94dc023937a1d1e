// Where the outcomes of waits stay until what they rest on is durable: durable-before-told.
//
// Thread-safe. Listeners are called with no lock held, on the thread that posts when nothing stands
// in the way, else on the journal's.
#pragma once

#include <condition_variable>
#include <vector>

#include "base/mutex.h"
#include "base/planted.h"
#include "lockd/journal.h"
#include "lockd/requests.h"

namespace lockd {

class DurableNotifier {
 public:
  // `journal` may be null: then everything is as durable as it will ever be.
  explicit DurableNotifier(Journal* journal) : journal_(journal) {}
  DurableNotifier(const DurableNotifier&) = delete;
  DurableNotifier& operator=(const DurableNotifier&) = delete;

  // Tells the listeners once `position` is durable; of a failure, should the journal fail first.
  // Leaves `settled` empty.
  void post(Position position, std::vector<WaitResult>& settled) EXCLUDES(mutex_) {
    if (journal_ != nullptr) journal_->commit(position);
    if (!settled.empty()) notify_when_durable(position, settled);
  }

  bool is_durable(Position position) const {
    return journal_ == nullptr || position <= journal_->durable() || planted(Bug::early_reply);
  }
  // False when the journal fails before.
  bool wait(Position position) EXCLUDES(mutex_) {
    return is_durable(position) || wait_for_journal(position);
  }

  // The journal's durable position or its state has changed.
  void progressed() EXCLUDES(mutex_);
  // The journal calls no more: what it has not made durable is told as closed.
  void close() EXCLUDES(mutex_);

  // Marks a thread that settles waits and tells of them, for as long as that takes. Batches do
  // without: they are their owners' to commit.
  class InFlight {
   public:
    explicit InFlight(DurableNotifier& notifier) : notifier_(notifier) {
      MutexLock lock(notifier_.mutex_);
      ++notifier_.in_flight_;
    }
    ~InFlight() {
      MutexLock lock(notifier_.mutex_);
      if (--notifier_.in_flight_ == 0) notifier_.progress_.notify_all();
    }
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;

   private:
    DurableNotifier& notifier_;
  };

  // Until there is no in_flight, and every listener has heard what was posted.
  void drain_notifications() EXCLUDES(mutex_);

 private:
  struct Pending {
    Position position;
    WaitResult result;
  };

  void notify_when_durable(Position position, std::vector<WaitResult>& settled) EXCLUDES(mutex_);
  bool wait_for_journal(Position position) EXCLUDES(mutex_);
  bool failed() const;

  Journal* const journal_;

  Mutex mutex_;
  std::condition_variable_any progress_;
  std::vector<Pending> pending_ GUARDED_BY(mutex_);
  int in_flight_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lockd
