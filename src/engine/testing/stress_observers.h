// Observers for the stress tests. Called on any thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>

#include "base/mutex.h"
#include "core/testing/event_model.h"
#include "lockd/observer.h"

namespace lockd {

// Checks the rules of key events.
class Spectator final : public Observer {
 public:
  void on_key_events(std::span<const KeyEvent> key_events, Position) noexcept override {
    MutexLock lock(mutex_);
    for (const KeyEvent& o : key_events) {
      EXPECT_EQ(model_.see(o), "") << o.key;
      grants_ += o.type == KeyEvent::Type::granted;
    }
  }
  std::uint64_t grants() {
    MutexLock lock(mutex_);
    return grants_;
  }

 private:
  Mutex mutex_;
  EventModel model_ GUARDED_BY(mutex_);
  std::uint64_t grants_ GUARDED_BY(mutex_) = 0;
};

// Observes common events at times only.
class Passer final : public Observer {
 public:
  void on_key_events(std::span<const KeyEvent> key_events, Position position) noexcept override {
    EXPECT_GT(position, 0u);
    for (const KeyEvent& o : key_events) EXPECT_LE(o.holders, o.limit) << "holders-bounded";
  }
};

}  // namespace lockd
