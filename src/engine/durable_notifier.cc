#include "engine/durable_notifier.h"

#include <algorithm>

namespace lockd {
namespace {

void notify(const WaitResult& result) { result.listener->on_wait_done(result); }

// What it rests on will never be durable: nothing else may be told of it.
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
  // The memory serves again, unless a listener has used the batch: that is for its next commit.
  if (results.empty()) results.swap(taken);
}

void DurableNotifier::notify_when_durable(WaitResult result) {
  if (!is_durable(result.position)) {
    MutexLock lock(mutex_);
    // Looked at again under the lock: progress made after this finds it pending.
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
    const Position durable = journal_->durable();  // one for all: it may be less a moment later
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

// Those that are in flight may still post, and what is pending leaves with one that is in flight. A
// journal without room may have none for days: what waits for it then ends as closed.
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
