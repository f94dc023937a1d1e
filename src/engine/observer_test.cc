// Observers and stats.
#include "lockd/observer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "engine/testing/forgetful_journal.h"
#include "engine/testing/listeners.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Type = KeyEvent::Type;

class Notes final : public Observer {
 public:
  struct Note {
    Type type;
    std::string key;
    std::string holder;
    Position position;
    bool operator==(const Note&) const = default;
  };

  void on_key_events(std::span<const KeyEvent> key_events, Position position) noexcept override {
    MutexLock lock(mutex_);
    for (const KeyEvent& o : key_events) {
      notes_.push_back({o.type, std::string(o.key), o.holder, position});
    }
  }
  std::vector<Note> take() {
    MutexLock lock(mutex_);
    return std::exchange(notes_, {});
  }

 private:
  Mutex mutex_;
  std::vector<Note> notes_ GUARDED_BY(mutex_);
};

class ObserverTest : public ::testing::Test {
 protected:
  using Expected = std::vector<Notes::Note>;

  ManualClock clock_;
  Notes notes_;  // outlives the engines, whose destructors make the last calls
  NullListener null_listener_;
};

TEST_F(ObserverTest, GetsCommonEventsOnlyWhileObserving) {
  Engine engine({.clock = &clock_, .observer = &notes_, .sweeper = false});
  EXPECT_TRUE(engine.acquire({.keys = "k", .holder = "a", .ttl = 5s}));
  EXPECT_EQ(notes_.take(), Expected{});
  notes_.observe(true);
  EXPECT_TRUE(engine.acquire({.keys = "k2", .holder = "a", .ttl = 5s}));
  EXPECT_EQ(notes_.take(), (Expected{{Type::granted, "k2", "a", 0}}));
  notes_.observe(false);
  EXPECT_TRUE(engine.acquire({.keys = "k3", .holder = "a", .ttl = 5s}));
  EXPECT_EQ(notes_.take(), Expected{});
}

TEST_F(ObserverTest, GetsEventsOfTheSweeperAndOfClose) {
  notes_.observe(true);
  {
    Engine engine({.clock = &clock_, .observer = &notes_, .sweeper = false});
    Batch batch(engine);
    batch.acquire({.keys = "k", .holder = "a", .ttl = 5s});
    batch.acquire({.keys = "k", .holder = "b", .ttl = 30s, .wait = 60s}, &null_listener_, 1);
    batch.acquire({.keys = "k", .holder = "c", .ttl = 30s, .wait = 60s}, &null_listener_, 2);
    notes_.take();
    clock_.advance(5s);
    engine.sweep();
    EXPECT_EQ(notes_.take(),
              (Expected{{Type::expired, "k", "a", 0}, {Type::granted, "k", "b", 0}}));
  }
  EXPECT_EQ(notes_.take(), (Expected{{Type::gave_up, "k", "c", 0}}));
}

// The observer must not disclose an event before its position is durable.
TEST_F(ObserverTest, GetsThePositionOfEachEvent) {
  ForgetfulJournal journal(ForgetfulJournal::Sync::by_hand);
  Engine engine({.clock = &clock_, .journal = &journal, .observer = &notes_, .sweeper = false});
  notes_.observe(true);
  Batch batch(engine);
  const Answer held = batch.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  const Position granted = batch.commit();
  EXPECT_EQ(notes_.take(), (Expected{{Type::granted, "k", "a", granted}}));
  EXPECT_FALSE(engine.is_durable(granted));
  // Queueing appends nothing and depends on the grant.
  batch.acquire({.keys = "k", .holder = "b", .ttl = 30s, .wait = 60s}, &null_listener_, 1);
  EXPECT_EQ(notes_.take(), (Expected{{Type::queued, "k", "b", granted}}));
  batch.release({.keys = "k", .holder = "a", .fence = held.grant.fence});
  const Position released = batch.commit();
  EXPECT_GT(released, granted);
  EXPECT_EQ(notes_.take(),
            (Expected{{Type::released, "k", "a", released}, {Type::granted, "k", "b", released}}));
  journal.sync();
}

TEST_F(ObserverTest, StatsAreSummedOverTheShards) {
  Engine engine({.shards = 16, .clock = &clock_, .sweeper = false});
  Batch batch(engine);
  for (int i = 0; i < 100; ++i) {
    const std::string key = "k" + std::to_string(i);
    const Answer held = batch.acquire({.keys = key, .holder = "a", .ttl = 30s});
    batch.acquire({.keys = key, .holder = "b", .ttl = 30s, .wait = 60s}, &null_listener_);
    clock_.advance(1ms);
    if (i % 2 == 0) batch.release({.keys = key, .holder = "a", .fence = held.grant.fence});
  }
  const Stats stats = engine.stats();
  EXPECT_EQ(stats.grants, 150u);
  EXPECT_EQ(stats.contended, 50u);
  EXPECT_EQ(stats.releases, 50u);
  EXPECT_EQ(stats.queued, 100u);
  EXPECT_EQ(stats.locks_held, 100u);
  EXPECT_EQ(stats.lock_waiters, 50u);
  EXPECT_EQ(stats.keys, 100u);
  EXPECT_EQ(stats.wait_time.buckets()[Histogram::bucket_of(1ms)], 50u);
  EXPECT_DOUBLE_EQ(stats.hold_time.sum_seconds(), 0.05);
}

// Retries within the engine are not counted.
TEST_F(ObserverTest, RejectionsAreCountedOncePerRequest) {
  Engine engine({.keys_max = 1, .waiters_max = 1});
  const auto held = engine.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  EXPECT_EQ(engine.acquire({.keys = "x", .holder = "a", .ttl = 30s}).outcome, Outcome::max_keys);
  EXPECT_EQ(engine.acquire({.keys = "k", .holder = "b", .ttl = 30s}).outcome, Outcome::held);
  EXPECT_EQ(engine.acquire({.keys = "k", .holder = "b", .ttl = 30s, .wait = 1us}).outcome,
            Outcome::timeout);
  Stats stats = engine.stats();
  EXPECT_EQ(stats.refusals.max_keys, 1u);
  EXPECT_EQ(stats.refusals.held, 1u) << "a timeout is no rejection";
  EXPECT_EQ(stats.timeouts, 1u);
  engine.release({.keys = "k", .holder = "a", .fence = held->fence});
  EXPECT_TRUE(engine.acquire({.keys = "x", .holder = "a", .ttl = 30s})) << "replaces the idle key";
  stats = engine.stats();
  EXPECT_EQ(stats.refusals.max_keys, 1u);
  EXPECT_EQ(stats.keys, 1u);
}

TEST_F(ObserverTest, GetsRareEventsAlways) {
  Engine engine({.clock = &clock_, .observer = &notes_, .sweeper = false});
  EXPECT_TRUE(engine.acquire({.keys = "k", .holder = "a", .ttl = 5s}));
  const AcquireResult grant = engine.acquire({.keys = "l", .holder = "a", .ttl = 50s});
  EXPECT_TRUE(engine.revoke({.key = "l", .fence = grant->fence}));
  clock_.advance(5s);
  engine.sweep();
  EXPECT_EQ(notes_.take(), (Expected{{Type::revoked, "l", "a", 0}, {Type::expired, "k", "a", 0}}));
}

}  // namespace
}  // namespace lockd
