// Calls listeners when their waits are over: those that ask for it at commit, with the position
// that the result rests on; the others once that position is durable.
//
// Thread-safe. Listeners are called with no lock held, on the thread that posts when nothing stands
// in the way, else on the journal's. What hands a result on is noexcept: none is lost on the way.
#pragma once

#include <condition_variable>
#include <vector>

#include "base/mutex.h"
#include "engine/in_flight.h"
#include "lockd/journal.h"
#include "lockd/requests.h"

namespace lockd {

class DurableNotifier {
 public:
  // `journal` may be null: then everything is as durable as it will ever be.
  explicit DurableNotifier(Journal* journal) : journal_(journal) {}
  DurableNotifier(const DurableNotifier&) = delete;
  DurableNotifier& operator=(const DurableNotifier&) = delete;

  // Has `position` made durable, and notifies the listeners of `results`; of a failure, should the
  // journal fail before what a result rests on is durable. Leaves `results` empty, but for what a
  // listener adds.
  void post(Position position, std::vector<WaitResult>& results) noexcept EXCLUDES(mutex_) {
    if (journal_ != nullptr) journal_->commit(position);
    if (!results.empty()) notify_all(results);
  }

  bool is_durable(Position position) const {
    return journal_ == nullptr || position <= journal_->durable();
  }
  // False when the journal fails before.
  bool wait(Position position) EXCLUDES(mutex_) {
    return is_durable(position) || wait_for_journal(position);
  }

  // The journal's durable position or its state has changed.
  void progressed() noexcept EXCLUDES(mutex_);
  // The journal calls no more: what it has not made durable ends as closed.
  void close() noexcept EXCLUDES(mutex_);

  // Threads that end waits and notify of them hold a Call of this for as long as that takes.
  // Batches do without: they are their owners' to commit.
  InFlight& in_flight() { return in_flight_; }

  // Until no such thread is left, and every listener has heard what was posted; or the journal has
  // no room for it.
  void drain() EXCLUDES(mutex_);

 private:
  void notify_all(std::vector<WaitResult>& results) EXCLUDES(mutex_);
  void notify_when_durable(WaitResult result) EXCLUDES(mutex_);
  bool wait_for_journal(Position position) EXCLUDES(mutex_);
  bool failed() const;

  Journal* const journal_;
  InFlight in_flight_;

  Mutex mutex_;
  std::condition_variable_any progress_;
  std::vector<WaitResult> pending_ GUARDED_BY(mutex_);
};

}  // namespace lockd
