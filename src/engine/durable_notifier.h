// DurableNotifier passes wait results to their listeners: at commit, or once the result is durable
// (see Listener::Delivery).
//
// Thread-safe. Listeners are called without locks, on the posting thread if the result is already
// durable, else on the journal's. Delivery is noexcept, so that no result is lost.
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
  // Without a journal (null) every position counts as durable.
  explicit DurableNotifier(Journal* journal) : journal_(journal) {}
  DurableNotifier(const DurableNotifier&) = delete;
  DurableNotifier& operator=(const DurableNotifier&) = delete;

  // Requests that `position` becomes durable, and passes `results` to their listeners: as `storage`
  // if the journal fails before a result is durable. Empties `results`, but listeners may add more.
  void post(Position position, std::vector<WaitResult>& results) noexcept EXCLUDES(mutex_) {
    if (journal_ != nullptr) journal_->commit(position);
    if (!results.empty()) notify_all(results);
  }

  bool is_durable(Position position) const {
    return journal_ == nullptr || position <= journal_->durable();
  }
  // Blocks until `position` is durable. Returns false if the journal fails first.
  bool wait(Position position) EXCLUDES(mutex_) {
    return is_durable(position) || wait_for_journal(position);
  }

  // Called by the journal when its durable position or state has changed.
  void progressed() noexcept EXCLUDES(mutex_);
  // Called after the journal's last call: pending results end as `closed`.
  void close() noexcept EXCLUDES(mutex_);

  // drain() waits for the holders of a Call: threads of the engine that end waits and notify
  // listeners. Batches have none, because their owners commit them.
  InFlight& in_flight() { return in_flight_; }

  // Blocks until every listener has received its posted results, or the journal has no space for
  // them.
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
