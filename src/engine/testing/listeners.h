// Listeners for the tests of the engine.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "lockd/engine.h"

namespace lockd {

struct NullListener final : Listener {
  void on_wait_done(const WaitResult&) noexcept override {}
};

// Records the result of each wait by its id. Thread-safe.
class WaitRecorder final : public Listener {
 public:
  explicit WaitRecorder(Delivery delivery = Delivery::when_durable) : Listener(delivery) {}
  void on_wait_done(const WaitResult& result) noexcept override {
    MutexLock lock(mutex_);
    EXPECT_TRUE(settled_.emplace(result.id, result).second) << "settled-once";
  }
  // Outcome::queued while the wait has not ended.
  Outcome outcome_of(std::uint64_t id = 0) {
    MutexLock lock(mutex_);
    const auto found = settled_.find(id);
    return found == settled_.end() ? Outcome::queued : found->second.outcome;
  }
  Fence fence_of(std::uint64_t id = 0) {
    MutexLock lock(mutex_);
    return settled_.at(id).grant.fence;
  }

 private:
  Mutex mutex_;
  std::map<std::uint64_t, WaitResult> settled_ GUARDED_BY(mutex_);
};

}  // namespace lockd
