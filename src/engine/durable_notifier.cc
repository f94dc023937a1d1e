#include "engine/durable_notifier.h"

#include <algorithm>

namespace lockd {
namespace {

void notify(const WaitResult& result) { result.listener->on_wait_done(result); }

// The result will never be durable, so the listener must not learn its grant.
void spoil(WaitResult& result, Outcome why) {
  result.outcome = why;
  result.grant = {};
}

}  // namespace

void DurableNotifier::notify_all(std::vector<WaitResult>& results) {
  std::vector<WaitResult> taken;
  taken.swap(results);
  for (const WaitResult& result : taken) {
    if (result.listener->delivery() == Listener::Delivery::at_commit) {
      notify(result);
    } else {
      notify_when_durable(result);
    }
  }
  taken.clear();
  // Reuses the memory, unless a listener has added results for the batch's next commit.
  if (results.empty()) results.swap(taken);
}

void DurableNotifier::notify_when_durable(WaitResult result) {
  if (!is_durable(result.position)) {
    MutexLock lock(mutex_);
    // Checked again under the lock: later progress finds the result in pending_.
    if (!is_durable(result.position)) {
      if (!failed()) return pending_.push_back(result);
      spoil(result, Outcome::storage);
    }
  }
  notify(result);
}

bool DurableNotifier::wait_for_journal(Position position) {
  MutexLock lock(mutex_);
  while (!is_durable(position)) {
    if (failed()) return false;
    progress_.wait(mutex_);
  }
  return true;
}

void DurableNotifier::progressed() noexcept {
  const InFlight::Call call(in_flight_);
  std::vector<WaitResult> ready;
  {
    MutexLock lock(mutex_);
    const bool all = failed();
    const Position durable = journal_->durable();  // read once, because it may decrease
    const auto waiting = std::stable_partition(
        pending_.begin(), pending_.end(),
        [&](const WaitResult& result) { return !all && result.position > durable; });
    ready.assign(waiting, pending_.end());
    pending_.erase(waiting, pending_.end());
    for (WaitResult& result : ready) {
      if (result.position > durable) spoil(result, Outcome::storage);
    }
    progress_.notify_all();
  }
  for (const WaitResult& result : ready) notify(result);
}

void DurableNotifier::close() noexcept {
  std::vector<WaitResult> left;
  {
    MutexLock lock(mutex_);
    left.swap(pending_);
  }
  for (WaitResult& result : left) {
    if (!is_durable(result.position)) spoil(result, Outcome::closed);
    notify(result);
  }
}

// Waits twice for calls in flight: they may still post results, and progressed() removes pending
// results before it notifies. A full disk may last for days, so it ends the wait; close() then ends
// the pending results as `closed`.
void DurableNotifier::drain() {
  in_flight_.wait_until_none();
  {
    MutexLock lock(mutex_);
    while (!pending_.empty() && journal_->state() != Journal::State::exhausted) {
      progress_.wait(mutex_);
    }
  }
  in_flight_.wait_until_none();
}

bool DurableNotifier::failed() const { return journal_->state() == Journal::State::failed; }

}  // namespace lockd
