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

class Outbox {
 public:
  // `journal` may be null: then everything is as durable as it will ever be.
  explicit Outbox(Journal* journal) : journal_(journal) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Tells the listeners once `position` is durable; of a failure, should the journal fail first.
  // Leaves `settled` empty.
  void post(Position position, std::vector<Settled>& settled) EXCLUDES(mutex_) {
    if (journal_ != nullptr) journal_->commit(position);
    if (!settled.empty()) tell_when_durable(position, settled);
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
  // Until every listener has heard what was posted.
  void wait_until_told() EXCLUDES(mutex_);

 private:
  struct Pending {
    Position position;
    Settled settled;
  };

  void tell_when_durable(Position position, std::vector<Settled>& settled) EXCLUDES(mutex_);
  bool wait_for_journal(Position position) EXCLUDES(mutex_);
  bool failed() const;

  Journal* const journal_;

  Mutex mutex_;
  std::condition_variable_any progress_;
  std::vector<Pending> pending_ GUARDED_BY(mutex_);
  bool telling_ GUARDED_BY(mutex_) = false;  // what was pending
};

}  // namespace lockd
