// Blocking and batched calls of many threads on few keys. Checks mutual exclusion as seen by the
// holders, increasing fences, and that every wait ends once. Meant for the thread sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "engine/testing/forgetful_journal.h"
#include "engine/testing/guarded_keys.h"
#include "engine/testing/stress_loop.h"
#include "engine/testing/stress_observers.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// Blocking calls; some are cancelled and some time out.
void block(Engine& engine, GuardedKeys& keys, unsigned seed, int rounds) {
  std::mt19937 random(seed);
  const std::string holder = "thread-" + std::to_string(seed);
  for (int i = 0; i < rounds; ++i) {
    const std::size_t key = random() % GuardedKeys::kKeys;
    const Kind kind = random() % 2 == 0 ? Kind::lock : Kind::semaphore;
    const std::string k = GuardedKeys::name(key);
    std::stop_source stop;
    std::jthread stopper;
    if (random() % 16 == 0) {
      stopper = std::jthread([&stop] {
        std::this_thread::yield();
        stop.request_stop();
      });
    }
    const Duration wait = std::chrono::microseconds(random() % 4 == 0 ? 50 : 5'000'000);
    const auto grant =
        engine.acquire({.keys = KeyItem(k, kind, Mode::exclusive, GuardedKeys::limit(kind)),
                        .holder = holder,
                        .ttl = 600s,
                        .wait = wait},
                       stop.get_token());
    ++keys.calls;
    if (!grant) {
      EXPECT_TRUE(grant.outcome == Outcome::timeout || grant.outcome == Outcome::cancelled)
          << describe(grant.outcome);
      continue;
    }
    keys.enter(key, kind, grant->fence);
    const HoldId hold{.keys = KeyItem(k, kind), .holder = holder, .fence = grant->fence};
    EXPECT_TRUE(random() % 4 != 0 || engine.renew(hold, 700s));
    keys.leave(key, kind);
    EXPECT_EQ(engine.release(hold).outcome, Outcome::ok);
  }
}

// Reads as a dashboard does.
void read_all(Engine& engine) {
  for (ListCursor place; !place.done;) {
    engine.list_some(
        place, 3, [](const KeyStatus& s) { EXPECT_LE(s.holders, s.limit) << "holders-bounded"; });
  }
  EXPECT_TRUE(engine.fence("key-0"));
  EXPECT_EQ(engine.status(Kind::semaphore, "key-1").outcome, Outcome::ok);
  const Stats stats = engine.stats();
  EXPECT_LE(stats.contended, stats.grants);
  EXPECT_LE(stats.idle_keys, stats.keys);
}

void stress(Engine& engine, Observer& observer, bool steadily, int rounds) {
  GuardedKeys keys;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) threads.emplace_back([&, i] { block(engine, keys, i, rounds); });
  for (unsigned i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] { StressLoop(engine, keys, 100 + i).run(rounds); });
  }
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      read_all(engine);
      if (!steadily) observer.observe(!observer.is_observing());
      std::this_thread::sleep_for(1ms);
    }
  });
  for (std::thread& t : threads) t.join();
  done = true;
  watcher.join();
  engine.list([](const KeyStatus& s) {
    EXPECT_EQ(s.holders, 0u) << s.key;
    EXPECT_EQ(s.waiters, 0u) << s.key;
  });
  const Stats stats = engine.stats();
  EXPECT_EQ(stats.locks_held + stats.semaphore_holders, 0u);
  EXPECT_EQ(stats.lock_waiters + stats.semaphore_waiters, 0u);
  EXPECT_EQ(stats.grants, stats.releases + stats.expiries + stats.disconnects);
  EXPECT_EQ(stats.queued, stats.contended + stats.timeouts + stats.cancels);
  std::printf("%llu calls\n", static_cast<unsigned long long>(keys.calls.load()));
}

constexpr int kRounds = 25'000;
constexpr Duration kShort = 20us;

TEST(EngineStress, BlockingAndBatchedCallsMixed) {
  Spectator spectator;
  spectator.observe(true);
  Engine engine({.shards = 2, .observer = &spectator});
  stress(engine, spectator, true, kRounds);
  EXPECT_EQ(engine.stats().grants, spectator.grants());
}

TEST(EngineStress, WithAJournal) {
  ForgetfulJournal journal;
  Passer passer;
  Engine engine({.shards = 2, .journal = &journal, .observer = &passer});
  stress(engine, passer, false, kRounds / 5);
}

TEST(EngineStress, KeyBudgetIsExactUnderConcurrency) {
  constexpr std::uint64_t kKeysMax = 16;
  Engine engine({.keys_max = kKeysMax, .idle_max = 0s, .gc_interval = 1ms});
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> held = 0;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < kRounds; ++i) {
        // At most four threads with four keys each, so the budget is always sufficient.
        std::vector<std::pair<std::string, Fence>> mine;
        for (int k = 0; k < 4; ++k) {
          const std::string key = std::to_string(t) + "-" + std::to_string(random() % 1'000'000);
          const auto grant = engine.acquire({.keys = key, .holder = "h", .ttl = 600s});
          ASSERT_TRUE(grant) << describe(grant.outcome);
          EXPECT_LE(held.fetch_add(1) + 1, kKeysMax);
          mine.emplace_back(key, grant->fence);
        }
        for (const auto& [key, fence] : mine) {
          held.fetch_sub(1);
          engine.release({.keys = key, .holder = "h", .fence = fence});
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

// Leases of a few microseconds, which only the sweeper and later requests end.
TEST(EngineStress, ExpiredLeaseIsNeverGrantedEarly) {
  Engine engine({.shards = 1});
  Mutex mutex;
  std::map<Fence, Time> expiry_of;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds / 10; ++i) {
        const std::string holder = std::to_string(t) + "-" + std::to_string(i);
        const auto grant =
            engine.acquire({.keys = "k", .holder = holder, .ttl = kShort, .wait = 60s});
        ASSERT_TRUE(grant);
        MutexLock lock(mutex);
        EXPECT_TRUE(expiry_of.emplace(grant->fence, grant->expires_at).second) << "fences-rise";
      }
    });
  }
  for (std::thread& t : threads) t.join();
  Time last;
  for (const auto& [fence, expires_at] : expiry_of) {
    EXPECT_GE(expires_at - kShort, last) << "lease-honoured: fence " << fence;
    last = expires_at;
  }
}

}  // namespace
}  // namespace lockd
