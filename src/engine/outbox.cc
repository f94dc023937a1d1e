#include "engine/outbox.h"

#include <algorithm>

namespace lockd {
namespace {

void tell(const Settled& settled) { settled.listener->settled(settled); }

}  // namespace

void Outbox::tell_when_durable(Position position, std::vector<Settled>& settled) {
  std::vector<Settled> ready;
  ready.swap(settled);
  bool durable = is_durable(position);
  if (!durable) {
    MutexLock lock(mutex_);
    // Looked at again under the lock: progress made after this finds them pending.
    durable = is_durable(position);
    if (!durable && !failed()) {
      for (const Settled& s : ready) pending_.push_back({position, s});
      return;
    }
  }
  for (Settled& s : ready) {
    if (!durable) s.outcome = Outcome::storage;
    tell(s);
  }
  ready.clear();
  // The memory serves again, unless a listener has used the batch: that is for its next commit.
  if (settled.empty()) settled.swap(ready);
}

bool Outbox::wait_for_journal(Position position) {
  MutexLock lock(mutex_);
  while (!is_durable(position)) {
    if (failed()) return false;
    progress_.wait(mutex_);
  }
  return true;
}

void Outbox::progressed() {
  const Teller teller(*this);
  std::vector<Pending> ready;
  {
    MutexLock lock(mutex_);
    const bool all = failed();
    const Position durable = journal_->durable();  // one for all: it may be less a moment later
    const auto waiting =
        std::stable_partition(pending_.begin(), pending_.end(),
                              [&](const Pending& p) { return !all && p.position > durable; });
    for (auto p = waiting; p != pending_.end(); ++p) {
      if (p->position > durable) p->settled.outcome = Outcome::storage;
    }
    ready.assign(waiting, pending_.end());
    pending_.erase(waiting, pending_.end());
    if (planted(Bug::untold) && ready.size() > 1) ready.pop_back();
    progress_.notify_all();
  }
  for (const Pending& p : ready) {
    tell(p.settled);
    if (planted(Bug::told_twice)) tell(p.settled);
  }
}

void Outbox::close() {
  std::vector<Pending> left;
  {
    MutexLock lock(mutex_);
    left.swap(pending_);
  }
  for (Pending& p : left) {
    if (!is_durable(p.position)) p.settled.outcome = Outcome::closed;
    tell(p.settled);
  }
}

void Outbox::wait_until_told() {
  MutexLock lock(mutex_);
  while (tellers_ != 0 || !pending_.empty()) progress_.wait(mutex_);
}

bool Outbox::failed() const { return journal_->state() == Journal::State::failed; }

}  // namespace lockd
