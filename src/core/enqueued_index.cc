#include "core/enqueued_index.h"

#include <memory>

namespace lockd {

EnqueuedIndex::~EnqueuedIndex() {
  for (Enqueued* enqueued : all_) delete enqueued;
}

Enqueued* EnqueuedIndex::find(SessionId session, const Semaphore* semaphore) const {
  const auto found = all_.find(Id{session, semaphore});
  return found == all_.end() ? nullptr : *found;
}

Enqueued* EnqueuedIndex::insert(SessionId session, Semaphore* semaphore) {
  auto enqueued = std::make_unique<Enqueued>();
  enqueued->session = session;
  enqueued->semaphore = semaphore;
  all_.insert(enqueued.get());
  return enqueued.release();
}

void EnqueuedIndex::remove(Enqueued* enqueued) {
  if (enqueued->lapsed_peers.linked()) {
    lapsed_.remove(enqueued);
    --lapsed_count_;
  }
  all_.erase(enqueued);
  delete enqueued;
}

Enqueued* EnqueuedIndex::lapse(Enqueued* enqueued) {
  enqueued->waiter = nullptr;
  enqueued->hold = nullptr;
  enqueued->semaphore->has_lapsed = true;
  lapsed_.push_back(enqueued);
  return ++lapsed_count_ > kLapsedMax ? lapsed_.front() : nullptr;
}

Enqueued* EnqueuedIndex::find_lapsed(const Semaphore* semaphore) const {
  Enqueued* e = lapsed_.front();
  while (e != nullptr && e->semaphore != semaphore) e = lapsed_.next(e);
  return e;
}

}  // namespace lockd
