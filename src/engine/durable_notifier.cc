#include "engine/durable_notifier.h"

#include <algorithm>

namespace lockd {
namespace {

void notify(const WaitResult& settled) { settled.listener->on_wait_done(settled); }

}  // namespace

void DurableNotifier::notify_when_durable(Position position, std::vector<WaitResult>& settled) {
  std::vector<WaitResult> ready;
  ready.swap(settled);
  bool durable = is_durable(position);
  if (!durable) {
    MutexLock lock(mutex_);
    // Looked at again under the lock: progress made after this finds them pending.
    durable = is_durable(position);
    if (!durable && !failed()) {
      for (const WaitResult& s : ready) pending_.push_back({position, s});
      return;
    }
  }
  for (WaitResult& s : ready) {
    if (!durable) s.outcome = Outcome::storage;
    notify(s);
  }
  ready.clear();
  // The memory serves again, unless a listener has used the batch: that is for its next commit.
  if (settled.empty()) settled.swap(ready);
}

bool DurableNotifier::wait_for_journal(Position position) {
  MutexLock lock(mutex_);
  while (!is_durable(position)) {
    if (failed()) return false;
    progress_.wait(mutex_);
  }
  return true;
}

void DurableNotifier::progressed() {
  const InFlight in_flight(*this);
  std::vector<Pending> ready;
  {
    MutexLock lock(mutex_);
    const bool all = failed();
    const Position durable = journal_->durable();  // one for all: it may be less a moment later
    const auto waiting =
        std::stable_partition(pending_.begin(), pending_.end(),
                              [&](const Pending& p) { return !all && p.position > durable; });
    for (auto p = waiting; p != pending_.end(); ++p) {
      if (p->position > durable) p->result.outcome = Outcome::storage;
    }
    ready.assign(waiting, pending_.end());
    pending_.erase(waiting, pending_.end());
    if (planted(Bug::untold) && ready.size() > 1) ready.pop_back();
    progress_.notify_all();
  }
  for (const Pending& p : ready) {
    notify(p.result);
    if (planted(Bug::told_twice)) notify(p.result);
  }
}

void DurableNotifier::close() {
  std::vector<Pending> left;
  {
    MutexLock lock(mutex_);
    left.swap(pending_);
  }
  for (Pending& p : left) {
    if (!is_durable(p.position)) p.result.outcome = Outcome::closed;
    notify(p.result);
  }
}

void DurableNotifier::drain_notifications() {
  MutexLock lock(mutex_);
  while (in_flight_ != 0 || !pending_.empty()) progress_.wait(mutex_);
}

bool DurableNotifier::failed() const { return journal_->state() == Journal::State::failed; }

}  // namespace lockd
