// Tests of key events and counters.
#include "core/table_stats.h"

#include <string>
#include <vector>

#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

class TableStatsTest : public LockTableTest {
 protected:
  void SetUp() override {
    LockTableTest::SetUp();
    table_->observe(Observed::everything);
  }
  using EventTexts = std::vector<std::string>;
  EventTexts event_texts() const {
    EventTexts all;
    for (const KeyEvent& o : key_events_) {
      all.push_back(text_of(o) + " (" + std::to_string(o.holders) + "/" + std::to_string(o.limit) +
                    ", " + std::to_string(o.waiters) + " wait)");
    }
    return all;
  }
};

TEST_F(TableStatsTest, ReleasedLockIsGrantedToNextWaiter) {
  const Fence a = grant("k", "a");
  pass(1s);
  queue("k", "b", 1);
  queue("k", secret(7, 1), 2);
  pass(2s);
  release("k", "a", a);
  EXPECT_EQ(event_texts(),
            (EventTexts{"granted a #1 (1/1, 0 wait)", "queued b (1/1, 1 wait)",
                        "queued tcp:7 (1/1, 2 wait)", "released a #1 ~3s (0/1, 2 wait)",
                        "granted b #2 ~2s (1/1, 1 wait)"}));
  for (const KeyEvent& o : key_events_) {
    EXPECT_EQ(o.kind, Kind::lock);
    EXPECT_EQ(o.ttl, kTtl);
  }
  EXPECT_EQ(key_events_.back().at, now_);
  EXPECT_EQ(key_events_[0].place, 0u);
  EXPECT_NE(key_events_[1].place, key_events_[2].place);
  EXPECT_EQ(key_events_[4].place, key_events_[1].place);
}

TEST_F(TableStatsTest, LeasesExpireAndWaitsTimeOut) {
  grant("k", "a", {.ttl = 5s});
  queue("k", "b", 1, 3s);
  pass(3s);
  pass(4s);  // two seconds past the lease
  EXPECT_EQ(event_texts(), (EventTexts{"granted a #1 (1/1, 0 wait)", "queued b (1/1, 1 wait)",
                                       "gave_up b ~3s: the wait timed out (1/1, 0 wait)",
                                       "expired a #1 ~7s (0/1, 0 wait)"}));
  EXPECT_EQ(table_->stats().expiry_lag.sum_seconds(), 2.0);
}

TEST_F(TableStatsTest, NoKeyEventsWithoutAnObserver) {
  table_->observe(Observed::nothing);
  const Fence a = grant("k", "a");
  queue("k", "b", 1);
  table_->observe(Observed::everything);
  release("k", "a", a);
  EXPECT_EQ(event_texts(),
            (EventTexts{"released a #1 (0/1, 1 wait)", "granted b #2 (1/1, 0 wait)"}));
  table_->observe(Observed::nothing);
  pass(60s);
  EXPECT_EQ(key_events_.size(), 2u);
  EXPECT_EQ(table_->stats().grants, 2u);
}

TEST_F(TableStatsTest, GaugesGoUpAndDown) {
  const Fence lock = grant("k", "a");
  const Fence permit = grant("s", "a", {.kind = kSemaphore, .limit = 2});
  grant("s", "b", {.kind = kSemaphore, .limit = 2});
  queue("k", "b", 1);
  acquire("s", "c", {.kind = kSemaphore, .limit = 2, .wait = 5s, .id = 2});
  acquire("s", "d", {.kind = kSemaphore, .limit = 2, .wait = 5s, .id = 3});
  Stats f = table_->stats();
  EXPECT_EQ(f.locks_held, 1u);
  EXPECT_EQ(f.semaphore_holders, 2u);
  EXPECT_EQ(f.lock_waiters, 1u);
  EXPECT_EQ(f.semaphore_waiters, 2u);
  EXPECT_EQ(f.keys, 2u);
  EXPECT_EQ(f.idle_keys, 0u);
  release("k", "a", lock);
  release("s", "a", permit, kSemaphore);
  pass(kTtl);
  f = table_->stats();
  EXPECT_EQ(f.locks_held + f.semaphore_holders + f.lock_waiters + f.semaphore_waiters, 0u);
  EXPECT_EQ(f.idle_keys, 2u);
  EXPECT_EQ(f.grants, 5u);
  EXPECT_EQ(f.contended, 2u);
  EXPECT_EQ(f.wait_time.count(), 2u);
  EXPECT_EQ(f.hold_time.count(), 5u);
  table_->forget_idle(now_, 1);
  EXPECT_EQ(table_->stats().keys, 1u);
  EXPECT_EQ(table_->stats().idle_keys, 1u);
}

TEST_F(TableStatsTest, RecoveredHoldCountsInGaugesAndNotInCounters) {
  const Event granted{.type = Event::Type::granted,
                      .key = "k",
                      .holder = "a",
                      .fence = 5,
                      .ttl = 20s,
                      .expires_at = now_ + 20s};
  ASSERT_TRUE(table_->apply(granted));
  EXPECT_EQ(table_->stats().locks_held, 1u);
  EXPECT_EQ(table_->stats().keys, 1u);
  EXPECT_EQ(table_->stats().grants, 0u);
  ASSERT_TRUE(table_->apply({.type = Event::Type::ended, .key = "k", .fence = 5}));
  EXPECT_EQ(table_->stats().locks_held, 0u);
  EXPECT_EQ(table_->stats().keys, 0u);
  EXPECT_EQ(table_->stats().hold_time.count(), 0u);
  EXPECT_TRUE(table_->effects().key_events.empty());
}

// The hold was renewed for longer than its own ttl, so its grant seems to lie in the future.
TEST_F(TableStatsTest, HoldTimeOfARecoveredHoldIsNotNegative) {
  ASSERT_TRUE(table_->apply({.type = Event::Type::granted,
                             .key = "k",
                             .holder = "a",
                             .fence = 5,
                             .ttl = 20s,
                             .expires_at = now_ + 60s}));
  EXPECT_FALSE(withdraw("k", "a", 5)) << "its client may have been notified";
  EXPECT_EQ(release("k", "a", 5), Outcome::ok);
  EXPECT_EQ(event_texts(), (EventTexts{"released a #5 (0/1, 0 wait)"}));
  EXPECT_EQ(table_->stats().hold_time.sum_seconds(), 0.0);
}

}  // namespace
}  // namespace lockd
