// Observers for the stress tests. Called on any thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "lockd/observer.h"

namespace lockd {

// Counts for itself, and must come to the counts that each key event tells.
class Spectator final : public Observer {
 public:
  void on_key_events(std::span<const KeyEvent> key_events, Position) noexcept override {
    MutexLock lock(mutex_);
    for (const KeyEvent& o : key_events) see(o);
  }
  std::uint64_t grants() {
    MutexLock lock(mutex_);
    return grants_;
  }

 private:
  struct Key {
    std::uint32_t holders = 0;
    std::uint32_t waiters = 0;
  };

  void see(const KeyEvent& o) REQUIRES(mutex_) {
    Key& key = keys_[{o.kind, std::string(o.key)}];
    switch (o.type) {
      case KeyEvent::Type::queued: ++key.waiters; break;
      case KeyEvent::Type::gave_up: --key.waiters; break;
      case KeyEvent::Type::granted:
        ++grants_;
        ++key.holders;
        if (o.place != 0) --key.waiters;
        break;
      default: --key.holders;
    }
    EXPECT_EQ(key.holders, o.holders) << o.key;
    EXPECT_EQ(key.waiters, o.waiters) << o.key;
  }

  Mutex mutex_;
  std::map<std::pair<Kind, std::string>, Key> keys_ GUARDED_BY(mutex_);
  std::uint64_t grants_ GUARDED_BY(mutex_) = 0;
};

// Is looked through now and then.
class Passer final : public Observer {
 public:
  void on_key_events(std::span<const KeyEvent> key_events, Position position) noexcept override {
    EXPECT_GT(position, 0u);
    for (const KeyEvent& o : key_events) EXPECT_LE(o.holders, o.limit) << "holders-bounded";
  }
};

}  // namespace lockd
