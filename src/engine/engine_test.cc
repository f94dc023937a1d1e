// The engine as an embedder uses it: blocking calls, time, cancellation, closing.
#include "lockd/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/testing/forgetful_journal.h"
#include "lockd/batch.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// A long time for events that must happen, because the machine may be busy.
constexpr Duration kSoon = 60s;

// Returns when `count` calls are in the queue of the key.
void await_queue(Engine& engine, std::uint32_t count) {
  const auto give_up = std::chrono::steady_clock::now() + kSoon;
  while (std::chrono::steady_clock::now() < give_up) {
    std::uint32_t waiters = 0;
    engine.list([&](const KeyStatus& status) { waiters += status.waiters; });
    if (waiters == count) return;
    std::this_thread::sleep_for(1ms);
  }
  FAIL() << "no queue of " << count;
}

TEST(Engine, AcquireRenewReleaseAndConflict) {
  Engine engine({.shards = 16});
  const auto grant = engine.acquire({.keys = "stone-42", .holder = "cart-7", .ttl = 30s});
  ASSERT_TRUE(grant);
  EXPECT_EQ(engine.fence("stone-42")->fence, grant->fence);
  EXPECT_TRUE(engine.fence("stone-42")->held);

  const auto refused = engine.acquire({.keys = "stone-42", .holder = "cart-8", .ttl = 30s});
  EXPECT_EQ(refused.outcome, Outcome::held);
  EXPECT_EQ(refused.conflicts.at(0).holder, "cart-7");
  EXPECT_EQ(refused.conflicts.at(0).fence, grant->fence);

  const HoldId hold{.keys = "stone-42", .holder = "cart-7", .fence = grant->fence};
  EXPECT_TRUE(engine.renew(hold, 60s));
  EXPECT_EQ(engine.release(hold).outcome, Outcome::ok);
  EXPECT_EQ(engine.release(hold).outcome, Outcome::expired);
  EXPECT_EQ(engine.renew(hold).outcome, Outcome::expired);
  EXPECT_FALSE(engine.fence("stone-42")->held);
}

TEST(Engine, RejectsOptionsOutOfRange) {
  for (std::uint32_t shards : {0u, 3u, 65u, 128u}) {
    EXPECT_THROW(Engine({.shards = shards}), std::invalid_argument) << shards;
  }
  for (std::uint32_t shards : {1u, 2u, 64u}) EXPECT_NO_THROW(Engine({.shards = shards}));
  EXPECT_THROW(Engine({.keys_max = 0}), std::invalid_argument);
  EXPECT_THROW(Engine({.idle_max = -1s}), std::invalid_argument);
  EXPECT_THROW(Engine({.gc_interval = 0s}), std::invalid_argument);
  EXPECT_THROW(Engine({.sweep_interval = 0s}), std::invalid_argument);
}

TEST(Engine, EveryOutcomeHasADescription) {
  std::set<std::string_view> words;
  for (int i = 0; i <= static_cast<int>(Outcome::invalid_note); ++i) {
    words.insert(describe(static_cast<Outcome>(i)));
  }
  EXPECT_EQ(words.size(), static_cast<std::size_t>(Outcome::invalid_note) + 1);
  EXPECT_FALSE(words.contains("unknown"));
}

TEST(Engine, FencesStartFromTheClockWithoutAJournal) {
  ManualClock clock(Time{1'577'836'800'000'000'000 + 1'000'000'000});  // a second into 2020
  Engine engine({.clock = &clock, .sweeper = false});
  EXPECT_EQ(engine.acquire({.keys = "k", .holder = "a", .ttl = 1s})->fence, 4'000'001u);
}

TEST(Engine, FencesIncreaseAcrossRestarts) {
  Fence last = 0;
  for (int i = 0; i < 3; ++i) {
    Engine engine;
    const Fence fence = engine.acquire({.keys = "k", .holder = "a", .ttl = 1s})->fence;
    EXPECT_GT(fence, last);
    EXPECT_LT(fence, kFenceMax);
    last = fence;
  }
}

TEST(Engine, BlockedCallsAreGrantedInOrder) {
  Engine engine;
  const auto first = engine.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      const std::string holder = "h" + std::to_string(i);
      const auto grant = engine.acquire({.keys = "k", .holder = holder, .ttl = 30s, .wait = kSoon});
      ASSERT_TRUE(grant);
      order.push_back(i);  // guarded by the lock
      engine.release({.keys = "k", .holder = holder, .fence = grant->fence});
    });
    await_queue(engine, static_cast<std::uint32_t>(i) + 1);
  }
  engine.release({.keys = "k", .holder = "a", .fence = first->fence});
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

TEST(Engine, EarlierDeadlineWakesTheSweeper) {
  Engine engine({.gc_interval = 3600s, .sweep_interval = 3600s});
  EXPECT_TRUE(engine.acquire({.keys = "long", .holder = "a", .ttl = 3000s}));
  std::this_thread::sleep_for(20ms);  // until the sweeper sleeps until the long deadline
  for (int i = 0; i < 20; ++i) {
    const auto short_one = engine.acquire({.keys = "k", .holder = "a", .ttl = 5ms});
    const auto next = engine.acquire({.keys = "k", .holder = "b", .ttl = 1s, .wait = kSoon});
    ASSERT_TRUE(next);
    EXPECT_GE(next->expires_at - 1s, short_one->expires_at) << "never early";
    engine.release({.keys = "k", .holder = "b", .fence = next->fence});
  }
}

TEST(Engine, LongestIntervalsDoNotMakeTheSweeperSpin) {
  class CountingClock final : public Clock {
   public:
    Time now() const noexcept override {
      ++reads;
      return clock_.now();
    }
    mutable std::atomic<int> reads = 0;

   private:
    SystemClock clock_;
  } clock;
  Engine engine({.gc_interval = kDurationMax, .sweep_interval = kDurationMax, .clock = &clock});
  std::this_thread::sleep_for(50ms);  // a spinning sweeper would read the clock often
  EXPECT_LT(clock.reads, 100);
  EXPECT_TRUE(engine.acquire({.keys = "k", .holder = "a", .ttl = 5ms}));
  EXPECT_TRUE(engine.acquire({.keys = "k", .holder = "b", .ttl = 1s, .wait = kSoon}));
}

TEST(Engine, TimedOutWaitNamesTheHolder) {
  Engine engine;
  EXPECT_TRUE(engine.acquire({.keys = "k", .holder = "a", .ttl = 30s}));
  const Time start = engine.now();
  const auto result = engine.acquire({.keys = "k", .holder = "b", .ttl = 1s, .wait = 30ms});
  EXPECT_EQ(result.outcome, Outcome::timeout);
  EXPECT_EQ(result.conflicts.at(0).holder, "a");
  EXPECT_GE(engine.now() - start, Duration(30ms)) << "never early";
}

TEST(Engine, StopTokenCancelsTheWait) {
  Engine engine;
  const auto held = engine.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  AcquireResult stopped;
  std::jthread thread([&](std::stop_token stop) {
    stopped = engine.acquire({.keys = "k", .holder = "b", .ttl = 1s, .wait = kSoon}, stop);
  });
  await_queue(engine, 1);
  thread.request_stop();
  thread.join();
  EXPECT_EQ(stopped.outcome, Outcome::cancelled);
  await_queue(engine, 0);
  engine.release({.keys = "k", .holder = "a", .fence = held->fence});
  EXPECT_FALSE(engine.fence("k")->held) << "a cancelled wait is never granted";
}

TEST(Engine, StoppedTokenRejectsTheRequest) {
  Engine engine;
  std::stop_source source;
  source.request_stop();
  const auto result = engine.acquire({.keys = "k", .holder = "a", .ttl = 1s}, source.get_token());
  EXPECT_EQ(result.outcome, Outcome::cancelled);
  EXPECT_FALSE(engine.fence("k")->held);
}

TEST(Engine, CloseEndsEveryWait) {
  Engine engine;
  const auto held = engine.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  std::atomic<int> closed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const std::string holder = "h" + std::to_string(i);
      const auto result = engine.acquire({.keys = "k", .holder = holder, .ttl = 1s, .wait = kSoon});
      closed += result.outcome == Outcome::closed;
    });
  }
  await_queue(engine, 8);
  engine.close();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(closed, 8);
  EXPECT_EQ(engine.acquire({.keys = "x", .holder = "a", .ttl = 1s}).outcome, Outcome::closed);
  EXPECT_TRUE(engine.fence("k")->held);
  engine.close();  // no effect
}

TEST(Engine, HoldsCanBeRenewedAndReleasedAfterClose) {
  ForgetfulJournal journal;
  Engine engine({.journal = &journal});
  const auto held = engine.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  const auto undelivered = engine.acquire({.keys = "l", .holder = "a", .ttl = 30s});
  engine.close();
  const HoldId hold{.keys = "k", .holder = "a", .fence = held->fence};
  EXPECT_EQ(engine.acquire({.keys = "k", .holder = "a", .ttl = 30s}).outcome, Outcome::closed);
  EXPECT_EQ(engine.renew(hold, 60s).outcome, Outcome::ok);
  EXPECT_EQ(engine.release(hold).outcome, Outcome::ok);
  EXPECT_TRUE(Batch(engine).withdraw({.keys = "l", .holder = "a", .fence = undelivered->fence}));
  EXPECT_FALSE(engine.fence("k")->held);
  EXPECT_EQ(journal.events().back().type, Event::Type::ended) << "the next start must know";
  EXPECT_EQ(engine.acquire({.keys = "k", .holder = "b", .ttl = 1s, .wait = 1s}).outcome,
            Outcome::closed);
}

TEST(Engine, CloseRejectsTwoPhaseAcquisition) {
  Engine engine;
  Session session{.id = 7};
  Batch batch(engine);
  batch.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  batch.enqueue({.keys = "k", .holder = {&session, 1}, .ttl = 30s});
  engine.close();
  EXPECT_EQ(batch.await_turn(session, Kind::lock, "k", 1s, nullptr).outcome, Outcome::closed);
  EXPECT_EQ(batch.enqueue({.keys = "x", .holder = {&session, 2}, .ttl = 30s}).outcome,
            Outcome::closed);
}

// With a journal, the call must commit before it waits, because the engine is destroyed afterwards.
TEST(Engine, DestructorEndsBlockedCalls) {
  ForgetfulJournal in_memory;
  for (ForgetfulJournal* const journal : {static_cast<ForgetfulJournal*>(nullptr), &in_memory}) {
    std::optional<Engine> engine(std::in_place, EngineOptions{.journal = journal});
    EXPECT_TRUE(engine->acquire({.keys = "k", .holder = "a", .ttl = 30s}));
    AcquireResult result;
    std::thread thread(
        [&] { result = engine->acquire({.keys = "k", .holder = "b", .ttl = 1s, .wait = kSoon}); });
    await_queue(*engine, 1);
    std::this_thread::sleep_for(20ms);  // the call is queued before it blocks
    engine.reset();
    thread.join();
    EXPECT_EQ(result.outcome, Outcome::closed);
  }
}

// A call that ends an expired lease may grant the key to a waiter, which must be notified before
// the call itself waits.
TEST(Engine, GrantCausedByABlockingCallIsDeliveredBeforeItBlocks) {
  ManualClock clock;
  Engine engine({.clock = &clock, .sweeper = false});
  ASSERT_TRUE(engine.acquire({.keys = "k", .holder = "a", .ttl = 1s}));
  std::promise<AcquireResult> next;
  auto granted = next.get_future();
  std::thread first([&] {
    next.set_value(engine.acquire({.keys = "k", .holder = "b", .ttl = 30s, .wait = 60s}));
  });
  await_queue(engine, 1);
  clock.advance(2s);
  std::thread second([&] {
    EXPECT_EQ(engine.acquire({.keys = "k", .holder = "c", .ttl = 1s, .wait = 60s}).outcome,
              Outcome::closed);
  });
  const bool in_time = granted.wait_for(60s) == std::future_status::ready;
  engine.close();
  first.join();
  second.join();
  EXPECT_TRUE(in_time);
  EXPECT_EQ(granted.get().outcome, Outcome::ok);
}

TEST(Engine, SweepReturnsTheTimeOfTheNextSweep) {
  ManualClock clock;
  Engine engine({.gc_interval = 100s, .clock = &clock, .sweeper = false});
  EXPECT_EQ(engine.sweep(), clock.now() + 100s);
  const auto grant = engine.acquire({.keys = "k", .holder = "a", .ttl = 7s});
  EXPECT_EQ(engine.sweep(), grant->expires_at);
  clock.advance(7s);
  EXPECT_EQ(engine.sweep(), clock.now() + 93s);
  EXPECT_FALSE(engine.fence("k")->held);
}

}  // namespace
}  // namespace lockd
