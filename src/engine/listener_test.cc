// Listeners: when and on which threads they are called, and what they may do.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <semaphore>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/testing/forgetful_journal.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Sync = ForgetfulJournal::Sync;

// Records the outcome, then calls a function.
class CallingListener final : public Listener {
 public:
  explicit CallingListener(std::function<void(const WaitResult&)> then = [](const WaitResult&) {})
      : then_(std::move(then)) {}
  void on_wait_done(const WaitResult& result) noexcept override {
    EXPECT_EQ(outcome, Outcome::queued) << "settled-once";
    outcome = result.outcome;
    then_(result);
  }
  Outcome outcome = Outcome::queued;

 private:
  const std::function<void(const WaitResult&)> then_;
};

class ListenerTest : public ::testing::Test {
 protected:
  EngineOptions options(Journal* journal = nullptr) {
    return {.clock = &clock_, .journal = journal, .sweeper = false};
  }
  static HoldId acquire(Batch& batch, std::string_view key) {
    const Answer answer = batch.acquire({.keys = key, .holder = "a", .ttl = 30s});
    return {.keys = key, .holder = "a", .fence = answer.grant.fence};
  }
  static void wait_for(Batch& batch, std::string_view key, Listener& listener,
                       std::string_view holder = "b") {
    const AcquireRequest request{.keys = key, .holder = holder, .ttl = 30s, .wait = 10s};
    EXPECT_EQ(batch.acquire(request, &listener).outcome, Outcome::queued);
  }

  ManualClock clock_;
};

TEST_F(ListenerTest, MayMakeNonBlockingCalls) {
  Engine engine(options());
  CallingListener listener([&](const WaitResult& s) {
    EXPECT_EQ(engine.release({.keys = "k", .holder = "b", .fence = s.grant.fence}).outcome,
              Outcome::ok);
  });
  Batch batch(engine);
  const HoldId held = acquire(batch, "k");
  wait_for(batch, "k", listener);
  engine.release(held);
  EXPECT_EQ(listener.outcome, Outcome::ok);
  EXPECT_FALSE(engine.fence("k")->held);
}

TEST_F(ListenerTest, MayUseTheBatchThatNotifiesIt) {
  Engine engine(options());
  Batch batch(engine);
  const HoldId first = acquire(batch, "k1");
  const HoldId second = acquire(batch, "k2");
  CallingListener releases([&](const WaitResult&) { batch.release(second); });
  CallingListener next;
  wait_for(batch, "k1", releases);
  wait_for(batch, "k2", next);
  batch.release(first);
  batch.commit();
  EXPECT_EQ(releases.outcome, Outcome::ok);
  EXPECT_EQ(next.outcome, Outcome::queued);
  batch.commit();
  EXPECT_EQ(next.outcome, Outcome::ok);
}

TEST_F(ListenerTest, MayUseABatchInItsDestructor) {
  Engine engine(options());
  std::optional<Batch> batch(std::in_place, engine);
  const HoldId first = acquire(*batch, "k1");
  const HoldId second = acquire(*batch, "k2");
  CallingListener releases([&, goes = &*batch](const WaitResult&) { goes->release(second); });
  CallingListener next;
  wait_for(*batch, "k1", releases);
  wait_for(*batch, "k2", next);
  batch->release(first);
  batch.reset();
  EXPECT_EQ(next.outcome, Outcome::ok);
}

TEST_F(ListenerTest, MayUseABatchOnTheJournalsThread) {
  ForgetfulJournal journal(Sync::by_hand);
  Engine engine(options(&journal));
  CallingListener releases([&](const WaitResult& s) {
    Batch(engine).release({.keys = "k", .holder = "b", .fence = s.grant.fence});
  });
  CallingListener next;
  Batch batch(engine);
  const HoldId held = acquire(batch, "k");
  wait_for(batch, "k", releases);
  wait_for(batch, "k", next, "c");
  batch.release(held);
  batch.commit();
  journal.sync();
  EXPECT_EQ(releases.outcome, Outcome::ok);
  EXPECT_EQ(next.outcome, Outcome::queued) << "granted, but not durable";
  journal.sync();
  EXPECT_EQ(next.outcome, Outcome::ok);
}

TEST_F(ListenerTest, OneSyncNotifiesAllDurableResults) {
  ForgetfulJournal journal(Sync::by_hand);
  Engine engine(options(&journal));
  CallingListener first;
  CallingListener second;
  Batch batch(engine);
  const HoldId held[] = {acquire(batch, "k1"), acquire(batch, "k2")};
  wait_for(batch, "k1", first);
  wait_for(batch, "k2", second);
  for (const HoldId& hold : held) batch.release(hold);
  batch.commit();
  EXPECT_EQ(first.outcome, Outcome::queued) << "granted, but not durable";
  journal.sync();
  EXPECT_EQ(first.outcome, Outcome::ok);
  EXPECT_EQ(second.outcome, Outcome::ok);
}

TEST_F(ListenerTest, DestroyedEngineEndsPendingResultsAsClosed) {
  ForgetfulJournal journal(Sync::by_hand);
  std::optional<Engine> engine(std::in_place, options(&journal));
  CallingListener granted;
  CallingListener waits;
  {
    Batch batch(*engine);
    const HoldId held = acquire(batch, "k");
    wait_for(batch, "k", granted);
    wait_for(batch, "k", waits);
    batch.release(held);
    EXPECT_FALSE(engine->is_durable(batch.commit()));
  }
  engine.reset();
  EXPECT_EQ(granted.outcome, Outcome::closed) << "the grant is not durable";
  EXPECT_EQ(waits.outcome, Outcome::closed);
}

TEST_F(ListenerTest, DrainWaitsForNotificationsOfASweep) {
  Engine engine(options());
  std::counting_semaphore<> entered(0);
  std::counting_semaphore<> drained(0);
  std::atomic<int> notified = 0;
  const auto slowly = [&](const WaitResult&) {
    entered.release();
    drained.try_acquire_for(100ms);  // fails: drain waits for both listeners
    ++notified;
  };
  CallingListener first(slowly);
  CallingListener second(slowly);
  Batch batch(engine);
  acquire(batch, "k");
  wait_for(batch, "k", first);
  wait_for(batch, "k", second);
  clock_.advance(10s);
  std::thread sweeper([&] { engine.sweep(); });
  entered.acquire();
  engine.close();
  engine.drain_notifications();
  EXPECT_EQ(notified, 2);
  drained.release(2);
  sweeper.join();
}

}  // namespace
}  // namespace lockd
