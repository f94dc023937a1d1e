// Sweeps of a large backlog are fair to all shards and to leases that expire meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kShards = 4;
constexpr std::uint64_t kCrowd = 20'000;

// Advances by `step_ns` with each reading, so that time passes during a sweep.
class SteppingClock final : public Clock {
 public:
  Time now() const noexcept override { return {now_ns_.fetch_add(step_ns) + step_ns}; }
  void advance(Duration by) { now_ns_ += static_cast<std::uint64_t>(by.count()); }

  std::uint64_t step_ns = 0;

 private:
  mutable std::atomic<std::uint64_t> now_ns_{Duration(1h).count()};
};

// Records the engine's progress at the end of each wait.
class ProgressRecorder final : public Listener {
 public:
  explicit ProgressRecorder(const Engine& engine)
      : Listener(Delivery::at_commit), engine_(engine) {}
  void on_wait_done(const WaitResult& result) noexcept override {
    EXPECT_EQ(result.outcome, Outcome::ok);
    const Stats stats = engine_.stats();
    ++notified;
    expiries = std::max(expiries, stats.expiries);
    keys = std::min(keys, stats.keys);
  }
  std::uint32_t notified = 0;
  std::uint64_t expiries = 0;
  std::uint64_t keys = UINT64_MAX;

 private:
  const Engine& engine_;
};

class SweepTest : public ::testing::Test {
 protected:
  // Acquires a key of that shard and returns its name.
  std::string acquire_in(std::uint32_t shard, Duration ttl) {
    while (true) {
      std::string key = "k" + std::to_string(next_++);
      Session session{.id = next_};
      Batch batch(engine_);
      batch.acquire({.keys = key, .holder = {&session, 1}, .ttl = ttl});
      if (session.shards == std::uint64_t{1} << shard) return key;
      batch.end_session(session);
    }
  }
  void acquire_with_waiter(std::uint32_t shard, Duration ttl) {
    const std::string key = acquire_in(shard, ttl);
    const AcquireRequest next{.keys = key, .holder = "next", .ttl = 1h, .wait = 1h};
    EXPECT_EQ(Batch(engine_).acquire(next, &progress_).outcome, Outcome::queued);
  }
  void acquire_many(std::uint32_t shard, std::uint64_t size, Duration ttl) {
    for (std::uint64_t i = 0; i < size; ++i) acquire_in(shard, ttl);
  }

  SteppingClock clock_;
  Sweep seen_;  // the sum of all reports
  Engine engine_{{.shards = kShards,
                  .idle_max = 60s,
                  .gc_interval = 10s,
                  .clock = &clock_,
                  .on_sweep =
                      [this](const Sweep& sweep) {
                        seen_.shards += sweep.shards;
                        seen_.waits_ended += sweep.waits_ended;
                        seen_.keys_forgotten += sweep.keys_forgotten;
                        EXPECT_GT(sweep.shards + sweep.keys_forgotten, 0u);
                      },
                  .sweeper = false,
                  .hash_seed = 1}};
  ProgressRecorder progress_{engine_};
  std::uint64_t next_ = 1;
};

TEST_F(SweepTest, BacklogOfOneShardDoesNotDelayAnother) {
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    acquire_with_waiter(shard, 1s);
    acquire_many(shard, kCrowd / kShards, 2s);
  }
  clock_.advance(5s);
  engine_.sweep();
  EXPECT_EQ(progress_.notified, kShards);
  EXPECT_LT(progress_.expiries, kCrowd / 4) << "each lease is the first of its shard";
  EXPECT_EQ(engine_.stats().expiries, kCrowd + kShards) << "the sweep is complete";
}

TEST_F(SweepTest, LeaseThatExpiresDuringASweepIsNotDelayed) {
  acquire_many(0, kCrowd, 2s);
  acquire_with_waiter(3, 3s);
  clock_.advance(3s - 5ms);
  clock_.step_ns = 1'000'000;
  engine_.sweep();
  EXPECT_EQ(progress_.notified, 1u);
  EXPECT_LT(progress_.expiries, kCrowd / 4);
}

TEST_F(SweepTest, IdleKeysDoNotDelayExpiries) {
  acquire_many(0, kCrowd, 2s);
  clock_.advance(3s);
  engine_.sweep();
  EXPECT_EQ(engine_.stats().keys, engine_.stats().idle_keys);
  acquire_with_waiter(3, 70s);
  clock_.advance(70s - 5ms);
  clock_.step_ns = 1'000'000;
  engine_.sweep();
  EXPECT_EQ(progress_.notified, 1u);
  EXPECT_GT(progress_.keys, kCrowd / 4);
  EXPECT_LT(engine_.stats().keys, 10u) << "all idle keys are forgotten";
}

TEST_F(SweepTest, OnSweepReportsTheWork) {
  engine_.sweep();  // the first sweep visits every shard
  seen_ = {};
  engine_.sweep();
  EXPECT_EQ(seen_.shards, 0u);
  acquire_with_waiter(1, 1s);
  clock_.advance(1s);
  engine_.sweep();
  EXPECT_GE(seen_.shards, 1u);
  EXPECT_EQ(seen_.waits_ended, 1u);
  const std::uint64_t keys = engine_.stats().keys;
  clock_.advance(2h);
  engine_.sweep();
  clock_.advance(2h);
  engine_.sweep();
  EXPECT_EQ(seen_.keys_forgotten, keys);
}

}  // namespace
}  // namespace lockd
