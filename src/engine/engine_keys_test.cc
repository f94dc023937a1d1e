// The caps on keys and holds over all shards, and forgetting idle keys.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "engine/testing/forgetful_journal.h"
#include "lockd/clock.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST(EngineKeys, KeysAreCappedAndIdleKeysAreReclaimed) {
  ManualClock clock;
  Engine engine({.keys_max = 64, .clock = &clock, .sweeper = false});
  const auto name = [](int i) { return "k" + std::to_string(i); };
  for (int i = 0; i < 64; ++i) {
    const auto grant = engine.acquire({.keys = name(i), .holder = "a", .ttl = 1s});
    ASSERT_TRUE(grant);
    engine.release({.keys = name(i), .holder = "a", .fence = grant->fence});
  }
  // Idle keys of all shards use up the budget. Each new key replaces one of them.
  for (int i = 100; i < 164; ++i) {
    ASSERT_TRUE(engine.acquire({.keys = name(i), .holder = "a", .ttl = 1s})) << i;
  }
  EXPECT_EQ(engine.acquire({.keys = "more", .holder = "a", .ttl = 1s}).outcome, Outcome::max_keys);
  clock.advance(1s);  // all leases expire
  engine.sweep();
  EXPECT_TRUE(engine.acquire({.keys = "more", .holder = "a", .ttl = 1s}));
}

std::string nth_key(std::size_t i) { return "k" + std::to_string(i); }

// Leaves twenty locks in the journal.
std::vector<AcquireResult> hold_twenty(ManualClock& clock, ForgetfulJournal& journal) {
  Engine engine({.clock = &clock, .journal = &journal, .sweeper = false});
  std::vector<AcquireResult> grants;
  for (std::size_t i = 0; i < 20; ++i) {
    grants.push_back(engine.acquire({.keys = nth_key(i), .holder = "a", .ttl = 30s}));
  }
  return grants;
}

TEST(EngineKeys, LoweredCapIsReachedAsKeysAreReleased) {
  ManualClock clock;
  ForgetfulJournal journal;
  const std::vector<AcquireResult> grants = hold_twenty(clock, journal);
  Engine engine({.keys_max = 8, .clock = &clock, .journal = &journal, .sweeper = false});
  const auto try_a_new_one = [&] {
    return engine.acquire({.keys = "more", .holder = "a", .ttl = 30s}).outcome;
  };
  for (std::size_t i = 0; i < 12; ++i) {
    engine.release({.keys = nth_key(i), .holder = "a", .fence = grants[i]->fence});
    EXPECT_EQ(try_a_new_one(), Outcome::max_keys) << i;
    EXPECT_EQ(engine.stats().keys, 19 - i);
  }
  engine.release({.keys = nth_key(12), .holder = "a", .fence = grants[12]->fence});
  EXPECT_EQ(try_a_new_one(), Outcome::ok);
  EXPECT_EQ(engine.stats().keys, 8u);
}

// One request reclaims all idle keys above the cap.
TEST(EngineKeys, LoweredCapIsReachedAtOnceIfKeysAreIdle) {
  ManualClock clock;
  ForgetfulJournal journal;
  {
    Engine engine({.clock = &clock, .journal = &journal, .sweeper = false});
    for (int i = 0; i < 2'000; ++i) {
      EXPECT_TRUE(engine.acquire({.keys = "k" + std::to_string(i), .holder = "a", .ttl = 1s}));
    }
  }
  Engine engine({.keys_max = 8, .clock = &clock, .journal = &journal, .sweeper = false});
  clock.advance(1s);
  engine.sweep();
  EXPECT_TRUE(engine.acquire({.keys = "more", .holder = "a", .ttl = 1s}));
  EXPECT_EQ(engine.stats().keys, 8u);
}

TEST(EngineKeys, SweepForgetsIdleKeys) {
  ManualClock clock;
  Engine engine({.idle_max = 10s, .gc_interval = 5s, .clock = &clock, .sweeper = false});
  const auto grant = engine.acquire({.keys = "k", .holder = "a", .ttl = 1s});
  engine.release({.keys = "k", .holder = "a", .fence = grant->fence});
  const auto keys = [&] {
    std::size_t count = 0;
    engine.list([&](const KeyStatus&) { ++count; });
    return count;
  };
  clock.advance(9s);
  engine.sweep();
  EXPECT_EQ(keys(), 1u);
  clock.advance(6s);
  engine.sweep();
  EXPECT_EQ(keys(), 0u);
  EXPECT_GT(engine.acquire({.keys = "k", .holder = "a", .ttl = 1s})->fence, grant->fence);
}

TEST(EngineHolds, AreCappedExactlyUnderConcurrency) {
  Engine engine({.holds_max = 500});
  std::atomic<int> granted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1'000; ++i) {
        const std::string key = std::to_string(t) + "-" + std::to_string(i);
        const auto grant = engine.acquire({.keys = key, .holder = "a", .ttl = 30s});
        granted += grant.outcome == Outcome::ok;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(granted, 500);
  EXPECT_EQ(engine.stats().locks_held, 500u);
  EXPECT_EQ(engine.stats().refusals.max_holds, 3'500u);
}

TEST(EngineHolds, OfOneNameAreCappedOverAllShards) {
  Engine engine({.holds_per_client_max = 3});
  const auto take = [&](int i, const char* holder) {
    return engine.acquire({.keys = std::to_string(i), .holder = holder, .ttl = 30s}).outcome;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(take(i, "a"), Outcome::ok);
  EXPECT_EQ(take(3, "a"), Outcome::max_client_holds);
  EXPECT_EQ(take(3, "b"), Outcome::ok);
}

}  // namespace
}  // namespace lockd
