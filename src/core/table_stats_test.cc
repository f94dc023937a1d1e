// What people hear: which key_events a rule causes, and what is counted.
#include "core/table_stats.h"

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

// "granted b #2 ~2s (1/1, 0 wait)": ~ is how long the wait or the hold had lasted.
std::string text(const KeyEvent& o) {
  static constexpr const char* kTypes[] = {"queued",       "granted",   "released", "expired",
                                           "disconnected", "revoked",   "gave_up",  "refused",
                                           "slow_wait",    "slow_hold", "resized"};
  std::ostringstream out;
  out << kTypes[static_cast<int>(o.type)] << ' ' << o.holder;
  if (o.fence != 0) out << " #" << o.fence;
  if (o.lasted != 0s) out << " ~" << o.lasted / 1s << 's';
  if (o.type == KeyEvent::Type::gave_up) out << ": " << describe(o.outcome);
  out << " (" << o.holders << '/' << o.limit << ", " << o.waiters << " wait)";
  return out.str();
}

class TableStatsTest : public LockTableTest {
 protected:
  void SetUp() override {
    LockTableTest::SetUp();
    table_->observe(Observed::everything);
  }
  std::vector<std::string> told() const {
    std::vector<std::string> all;
    for (const KeyEvent& o : key_events_) all.push_back(text(o));
    return all;
  }
  using Told = std::vector<std::string>;
};

TEST_F(TableStatsTest, ALockIsPassedOn) {
  const Fence a = grant("k", "a");
  pass(1s);
  queue("k", "b", 1);
  queue("k", secret(7, 1), 2);
  pass(2s);
  release("k", "a", a);
  EXPECT_EQ(told(), (Told{"granted a #1 (1/1, 0 wait)", "queued b (1/1, 1 wait)",
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

TEST_F(TableStatsTest, LeasesAndWaitsRunOut) {
  grant("k", "a", {.ttl = 5s});
  queue("k", "b", 1, 3s);
  pass(3s);
  pass(4s);  // two more than the lease
  EXPECT_EQ(told(), (Told{"granted a #1 (1/1, 0 wait)", "queued b (1/1, 1 wait)",
                          "gave_up b ~3s: the wait timed out (1/1, 0 wait)",
                          "expired a #1 ~7s (0/1, 0 wait)"}));
  EXPECT_EQ(table_->stats().expiry_lag.sum_seconds(), 2.0);
}

TEST_F(TableStatsTest, ASessionGoesWithAllItHas) {
  grant("k", secret(1, 1));
  grant("other", "a");
  queue("other", secret(1, 2), 1);
  pass(1s);
  end_session(1);
  EXPECT_EQ(told(), (Told{"granted tcp:1 #1 (1/1, 0 wait)", "granted a #2 (1/1, 0 wait)",
                          "queued tcp:1 (1/1, 1 wait)",
                          "gave_up tcp:1 ~1s: the wait was cancelled (1/1, 0 wait)",
                          "disconnected tcp:1 #1 ~1s (0/1, 0 wait)"}));
}

TEST_F(TableStatsTest, AHoldLeftToItsLeaseIsNotOver) {
  grant("k", secret(1, 1));
  end_session(1, true);
  EXPECT_EQ(told(), (Told{"granted tcp:1 #1 (1/1, 0 wait)"}));
}

TEST_F(TableStatsTest, AGrantIsWithdrawn) {
  withdraw("k", "a", grant("k", "a"));
  EXPECT_EQ(told(), (Told{"granted a #1 (1/1, 0 wait)", "disconnected a #1 (0/1, 0 wait)"}));
}

TEST_F(TableStatsTest, TwoPhase) {
  const Fence a = grant("k", "a");
  enqueue("k", secret(1, 1));
  await_turn("k", 1);  // does not want to wait: the place is gone
  enqueue("k", secret(1, 2));
  release("k", "a", a);
  await_turn("k", 1);
  EXPECT_EQ(told(),
            (Told{"granted a #1 (1/1, 0 wait)", "queued tcp:1 (1/1, 1 wait)",
                  "gave_up tcp:1: the wait timed out (1/1, 0 wait)", "queued tcp:1 (1/1, 1 wait)",
                  "released a #1 (0/1, 1 wait)", "granted tcp:1 #2 (1/1, 0 wait)"}));
}

TEST_F(TableStatsTest, RenewingAndAskingAgainAreNoKeyEvents) {
  const Fence fence = grant("k", "a");
  renew("k", "a", fence);
  grant("k", "a");
  acquire("k", "b");  // refused
  EXPECT_EQ(told(), (Told{"granted a #1 (1/1, 0 wait)"}));
}

// The second place of a name ends when the first has brought the permit.
TEST_F(TableStatsTest, APlaceEndsByItsNamesOtherPlace) {
  const Ask ask{.kind = kSemaphore, .limit = 2, .wait = 10s};
  const Fence x = grant("s", "x", ask);
  grant("s", "y", ask);
  for (std::uint64_t id : {1u, 2u}) {
    Ask waiting = ask;
    waiting.id = id;
    acquire("s", "a", waiting);
  }
  key_events_.clear();
  release("s", "x", x, kSemaphore);
  EXPECT_EQ(told(), (Told{"released x #1 (1/2, 2 wait)", "granted a #3 (2/2, 1 wait)",
                          "gave_up a: done (2/2, 0 wait)"}));
}

TEST_F(TableStatsTest, WhoStillWaitsWhenTheEngineClosesGivesUp) {
  grant("k", "a");
  queue("k", "b", 1);
  Cursor cursor;
  table_->end_waits(cursor, Outcome::closed);
  pass(0s);
  EXPECT_EQ(told().back(), "gave_up b: the engine is closed (1/1, 0 wait)");
}

TEST_F(TableStatsTest, WhileNobodyLooksNothingIsCollected) {
  table_->observe(Observed::nothing);
  const Fence a = grant("k", "a");
  queue("k", "b", 1);
  table_->observe(Observed::everything);
  release("k", "a", a);
  EXPECT_EQ(told(), (Told{"released a #1 (0/1, 1 wait)", "granted b #2 (1/1, 0 wait)"}));
  table_->observe(Observed::nothing);
  pass(60s);
  EXPECT_EQ(key_events_.size(), 2u);
  EXPECT_EQ(table_->stats().grants, 2u);
}

TEST_F(TableStatsTest, CountsEachThingOnce) {
  // What each does to a lock "k" that a holds with fence 1, with b in the queue.
  struct Case {
    const char* what;
    std::function<void()> act;
    std::uint64_t Stats::*counter;
  };
  const Case cases[] = {
      {"grant", [&] { grant("new", "a"); }, &Stats::grants},
      {"renew", [&] { renew("k", "a", 1); }, &Stats::renewals},
      {"ask again", [&] { grant("k", "a"); }, &Stats::renewals},
      {"release", [&] { release("k", "a", 1); }, &Stats::releases},
      {"passed on", [&] { release("k", "a", 1); }, &Stats::contended},
      {"expiry", [&] { pass(kTtl); }, &Stats::expiries},
      {"withdraw", [&] { withdraw("k", "a", 1); }, &Stats::disconnects},
      {"end of session", [&] { grant("s", secret(1, 1)), end_session(1); }, &Stats::disconnects},
      {"another in the queue", [&] { queue("k", "c", 2); }, &Stats::queued},
      {"enqueue", [&] { enqueue("k", secret(1, 1)); }, &Stats::queued},
      {"timeout", [&] { pass(10s); }, &Stats::timeouts},
      {"no wait", [&] { enqueue("k", secret(1, 1)), await_turn("k", 1); }, &Stats::timeouts},
      {"cancel", [&] { EXPECT_TRUE(cancel(0, 1)); }, &Stats::cancels},
      {"gone", [&] { enqueue("k", secret(1, 1)), end_session(1); }, &Stats::cancels},
  };
  for (const Case& c : cases) {
    reset({});
    settled_.clear();
    grant("k", "a");
    queue("k", "b", 1);
    const Stats before = table_->stats();
    c.act();
    EXPECT_EQ(table_->stats().*c.counter - before.*c.counter, 1u) << c.what;
  }
}

TEST_F(TableStatsTest, CountsRefusalsByTheirReason) {
  reset({.waiters_max = 1});
  const Ask ask{.kind = kSemaphore, .limit = 1};
  grant("s", "a", ask);
  acquire("s", "b", ask);
  acquire("s", "b", {.kind = kSemaphore, .limit = 2});
  enqueue("s", secret(1, 1), {.kind = kSemaphore, .limit = 2});
  acquire("s", "b", {.kind = kSemaphore, .limit = 1, .wait = 1s, .id = 1});
  acquire("s", "c", {.kind = kSemaphore, .limit = 1, .wait = 1s, .id = 2});
  enqueue("s", secret(1, 1), ask);
  const Stats::Refusals refusals = table_->stats().refusals;
  EXPECT_EQ(refusals.held, 1u);
  EXPECT_EQ(refusals.limit_mismatch, 2u);
  EXPECT_EQ(refusals.max_waiters, 2u);
}

TEST_F(TableStatsTest, WithoutAListenerNothingIsQueuedOrCounted) {
  grant("k", "a");
  const AcquireRequest request{.key = "k", .holder = "b", .ttl = kTtl, .wait = 10s};
  EXPECT_EQ(table_->acquire(now_, request, nullptr, 0).outcome, Outcome::held);
  EXPECT_EQ(table_->waiters(), 0u);
  EXPECT_EQ(table_->stats().refusals.held, 0u);
  EXPECT_EQ(table_->check(), "");
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

TEST_F(TableStatsTest, WhatIsRecoveredIsThereAndWasNotDoneHere) {
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

// Renewed for longer than its own lease, it seems to have been granted in the future.
TEST_F(TableStatsTest, WhatIsRecoveredWasHeldNoLessThanNotAtAll) {
  ASSERT_TRUE(table_->apply({.type = Event::Type::granted,
                             .key = "k",
                             .holder = "a",
                             .fence = 5,
                             .ttl = 20s,
                             .expires_at = now_ + 60s}));
  EXPECT_FALSE(withdraw("k", "a", 5)) << "somebody may have been told";
  EXPECT_EQ(release("k", "a", 5), Outcome::ok);
  EXPECT_EQ(told(), (Told{"released a #5 (0/1, 0 wait)"}));
  EXPECT_EQ(table_->stats().hold_time.sum_seconds(), 0.0);
}

}  // namespace
}  // namespace lockd
