// Several keys in one step: all or none, in order, under one fence.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/testing/forgetful_journal.h"
#include "engine/testing/listeners.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class KeySetTest : public ::testing::Test {
 protected:
  EngineOptions options() { return {.clock = &clock_, .sweeper = false, .hash_seed = 1}; }

  Answer ask(const std::vector<KeyItem>& keys, const char* holder, Duration wait = 0s,
             std::uint64_t id = 0) {
    conflicts_.clear();
    Batch batch(*engine_);
    return batch.acquire({.keys = keys, .holder = holder, .ttl = 30s, .wait = wait}, &listener_, id,
                         &conflicts_);
  }
  Answer ask_one(const char* key, const char* holder, Duration wait = 0s, std::uint64_t id = 0,
                 Mode mode = Mode::exclusive) {
    Batch batch(*engine_);
    return batch.acquire(
        {.keys = KeyItem(key, Kind::lock, mode), .holder = holder, .ttl = 30s, .wait = wait},
        &listener_, id);
  }
  Outcome release(const char* key, const char* holder, Fence fence) {
    return engine_->release({.keys = key, .holder = holder, .fence = fence}).outcome;
  }
  void pass(Duration time) {
    clock_.advance(time);
    engine_->sweep();
  }
  std::uint32_t holders(const char* key, Kind kind = Kind::lock) {
    const StatusResult status = engine_->status(kind, key);
    return status ? status->holders : 0;
  }
  std::uint32_t waiters(const char* key) {
    const StatusResult status = engine_->status(Kind::lock, key);
    return status ? status->waiters : 0;
  }
  void TearDown() override {
    if (!engine_.has_value()) return;
    EXPECT_EQ(engine_->check(), "");
  }

  ManualClock clock_;
  WaitRecorder listener_{Listener::Delivery::at_commit};
  std::vector<Conflict> conflicts_;
  std::optional<Engine> engine_{std::in_place, options()};
};

TEST_F(KeySetTest, RepeatedRequestReturnsTheShortestLease) {
  const Fence fence = ask({"a", "b"}, "cart").grant.fence;
  EXPECT_TRUE(engine_->renew({.keys = "a", .holder = "cart", .fence = fence}, 90s));
  const Answer again = ask({"a", "b"}, "cart");
  ASSERT_EQ(again.outcome, Outcome::ok);
  EXPECT_EQ(again.grant.ttl, 30s);
  EXPECT_EQ(again.grant.expires_at, clock_.now() + 30s);
}

// The set is cancelled in one shard and also queued for b in another. The next waiter for b is
// granted in the last instant of its wait.
TEST_F(KeySetTest, CancelledSetDoesNotBlockLaterWaiters) {
  ask_one("a", "x");
  ask_one("b", "y");
  const Answer set = ask({"a", "b"}, "cart", 60s, 1);
  ASSERT_EQ(ask_one("b", "z", 30s, 2).outcome, Outcome::queued);
  clock_.advance(30s);
  EXPECT_TRUE(Batch(*engine_).cancel(set.wait));
  EXPECT_EQ(listener_.outcome_of(1), Outcome::cancelled);
  EXPECT_EQ(listener_.outcome_of(2), Outcome::ok);
}

TEST_F(KeySetTest, SetHasOneTo64DifferentKeys) {
  std::vector<std::string> names;
  for (int i = 0; i < 65; ++i) names.push_back("k" + std::to_string(i));
  std::vector<KeyItem> keys(names.begin(), names.end());
  EXPECT_EQ(ask(keys, "cart").outcome, Outcome::invalid_set);
  keys.pop_back();
  EXPECT_EQ(ask(keys, "cart").outcome, Outcome::ok);
  EXPECT_EQ(ask({}, "cart").outcome, Outcome::invalid_set);
  EXPECT_EQ(ask({"a", "a"}, "cart").outcome, Outcome::invalid_set);
  EXPECT_EQ(ask({"a", {"a", Kind::semaphore}}, "cart").outcome, Outcome::ok);
  EXPECT_EQ(ask({"b", ""}, "cart").outcome, Outcome::invalid_key);
  EXPECT_EQ(ask({"b", {"s", Kind::semaphore, Mode::exclusive, 2, 3}}, "cart").outcome,
            Outcome::invalid_permits);
  EXPECT_FALSE(engine_->status(Kind::lock, "b"));
}

TEST_F(KeySetTest, SetIsGrantedWhenFirstInAllQueues) {
  const Fence a = ask_one("a", "x").grant.fence;
  const Fence b = ask_one("b", "y").grant.fence;
  ask_one("a", "z", 60s, 1);
  EXPECT_EQ(ask({"a", "b", "c"}, "cart", 60s, 2).outcome, Outcome::queued);
  EXPECT_EQ(waiters("c"), 1u);
  EXPECT_EQ(engine_->status(Kind::lock, "c")->queue[0].keys, 3u);
  release("b", "y", b);
  EXPECT_EQ(listener_.outcome_of(2), Outcome::queued);
  release("a", "x", a);
  EXPECT_EQ(listener_.outcome_of(1), Outcome::ok);
  EXPECT_EQ(listener_.outcome_of(2), Outcome::queued);
  release("a", "z", listener_.fence_of(1));
  EXPECT_EQ(listener_.outcome_of(2), Outcome::ok);
  EXPECT_EQ(holders("a"), 1u);
  EXPECT_EQ(holders("b"), 1u);
  EXPECT_EQ(holders("c"), 1u);
}

TEST_F(KeySetTest, WaitIsCutToSetWaitMax) {
  engine_.emplace(
      EngineOptions{.set_wait_max = 5s, .clock = &clock_, .sweeper = false, .hash_seed = 1});
  ask_one("a", "x");
  ask({"a", "b"}, "cart", 60s, 1);
  pass(5s - 1ns);
  EXPECT_EQ(listener_.outcome_of(1), Outcome::queued);
  pass(1ns);
  EXPECT_EQ(listener_.outcome_of(1), Outcome::timeout);
}

TEST_F(KeySetTest, ConflictWithOwnSharedHoldNamesTheRequester) {
  for (const char* name : {"x", "cart", "y"}) ask_one("page", name, 0s, 0, Mode::shared);
  EXPECT_EQ(ask({{"page", Kind::lock, Mode::shared}, "b"}, "cart").outcome, Outcome::held);
  ASSERT_EQ(conflicts_.size(), 1u);
  EXPECT_TRUE(conflicts_[0].own);
  EXPECT_EQ(conflicts_[0].holder, "cart");
  EXPECT_EQ(conflicts_[0].holders, 3u);
}

// The holder has all keys, but in another mode.
TEST_F(KeySetTest, QueuedTwiceInDifferentModesIsAMismatch) {
  const Fence a = ask_one("a", "x").grant.fence;
  ask({"a", "b"}, "cart", 60s, 1);
  ask({{"a", Kind::lock, Mode::shared}, "b"}, "cart", 60s, 2);
  release("a", "x", a);
  ASSERT_EQ(listener_.outcome_of(1), Outcome::ok);
  EXPECT_EQ(listener_.outcome_of(2), Outcome::mode_mismatch);
  EXPECT_EQ(ask({{"a", Kind::lock, Mode::shared}, "b"}, "cart").outcome, Outcome::mode_mismatch);
  ASSERT_EQ(conflicts_.size(), 1u);
  EXPECT_EQ(conflicts_[0].item, 0u);
  EXPECT_TRUE(conflicts_[0].own);
}

TEST_F(KeySetTest, RenewsAllOrNoneAndReleasesHeldKeys) {
  const Fence fence = ask({"a", "b", "c"}, "cart").grant.fence;
  const std::vector<KeyItem> keys{"a", "b", "c"};
  const HoldId all{keys, "cart", fence};
  clock_.advance(10s);
  const AcquireResult renewed = engine_->renew(all, 60s);
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->ttl, 60s);
  EXPECT_EQ(engine_->status(Kind::lock, "c")->holds[0].remaining, 60s);
  release("b", "cart", fence);
  const AcquireResult refused = engine_->renew(all, 90s);
  EXPECT_EQ(refused.outcome, Outcome::expired);
  ASSERT_EQ(refused.conflicts.size(), 1u);
  EXPECT_EQ(refused.conflicts[0].item, 1u);
  EXPECT_EQ(engine_->status(Kind::lock, "a")->holds[0].remaining, 60s);
  const ReleaseResult released = engine_->release(all);
  ASSERT_TRUE(released);
  EXPECT_EQ(released.released, 0b101u);
  EXPECT_FALSE(released.has_released(1));
  EXPECT_EQ(holders("a") + holders("c"), 0u);
}

TEST_F(KeySetTest, RejectionAtACapLeavesNoPlace) {
  engine_.emplace(EngineOptions{.keys_max = 3,
                                .waiters_max = 1,
                                .holds_max = 4,
                                .clock = &clock_,
                                .sweeper = false,
                                .hash_seed = 1});
  EXPECT_EQ(ask({"a", "b", "c", "d"}, "cart").outcome, Outcome::max_keys);
  EXPECT_EQ(engine_->stats().keys, 0u);
  ask_one("a", "x");
  ask_one("a", "y", 60s, 1);
  EXPECT_EQ(ask({"a", "b"}, "cart", 60s).outcome, Outcome::max_waiters);
  EXPECT_EQ(engine_->stats().lock_waiters, 1u);
  EXPECT_EQ(ask({"b", "c", {"s", Kind::semaphore}}, "cart").outcome, Outcome::max_keys);
  ask_one("b", "z");
  EXPECT_EQ(ask({"c", "b"}, "cart", 60s).outcome, Outcome::max_holds);
  EXPECT_EQ(engine_->stats().keys, 2u);
  EXPECT_EQ(engine_->stats().lock_waiters, 1u);
}

TEST_F(KeySetTest, TryAtAFullQueueIsHeldOrMaxWaiters) {
  for (const bool is_refused : {false, true}) {
    EngineOptions one_waiter = options();
    one_waiter.waiters_max = 1;
    one_waiter.refuses_tries_at_full_queue = is_refused;
    engine_.emplace(one_waiter);
    ask_one("a", "x");
    EXPECT_EQ(ask({"b", "a"}, "cart").outcome, Outcome::held);
    ask_one("a", "y", 60s, is_refused);
    EXPECT_EQ(ask({"b", "a"}, "cart").outcome, is_refused ? Outcome::max_waiters : Outcome::held);
    ASSERT_EQ(conflicts_.size(), 1u);
    EXPECT_EQ(conflicts_[0].item, 1u);
  }
}

// One key's limit rejects the set; the other keys are neither held nor created.
TEST_F(KeySetTest, IdleSemaphoreThatKeepsItsLimitRejectsTheSet) {
  const auto pool = [](std::uint32_t limit) {
    return KeyItem("pool", Kind::semaphore, Mode::exclusive, limit);
  };
  for (const bool keeps : {false, true}) {
    EngineOptions keeping = options();
    keeping.keeps_idle_limits = keeps;
    engine_.emplace(keeping);
    const Answer first = ask({"a", pool(3)}, "cart");
    ASSERT_EQ(first.outcome, Outcome::ok);
    ASSERT_TRUE(engine_->release({.keys = std::vector<KeyItem>{"a", pool(3)},
                                  .holder = "cart",
                                  .fence = first.grant.fence}));
    const Outcome mismatch = keeps ? Outcome::limit_mismatch : Outcome::ok;
    EXPECT_EQ(ask({"b", pool(5)}, "other").outcome, mismatch);
    EXPECT_EQ(ask({"c", pool(5)}, "third", 60s, keeps).outcome, mismatch);
    if (!keeps) continue;
    ASSERT_EQ(conflicts_.size(), 1u);
    EXPECT_EQ(conflicts_[0].item, 1u);
    EXPECT_EQ(conflicts_[0].limit, 3u);
    EXPECT_EQ(engine_->stats().keys, 2u);
    EXPECT_EQ(ask({"b", pool(3)}, "other").outcome, Outcome::ok);
    pass(31s);   // the lease expires
    pass(120s);  // the key is forgotten
    EXPECT_EQ(ask({"b", pool(5)}, "other").outcome, Outcome::ok);
  }
}

TEST_F(KeySetTest, IdleKeysAreReclaimed) {
  engine_.emplace(EngineOptions{.keys_max = 4, .clock = &clock_, .sweeper = false});
  for (const char* key : {"1", "2", "3", "4"}) {
    release(key, "x", ask_one(key, "x").grant.fence);
  }
  EXPECT_EQ(ask({"a", "b", "c", "1"}, "cart").outcome, Outcome::ok);
}

// With many keys, some are in shards that are closed later than a's.
TEST_F(KeySetTest, CloseGrantsNothingToLaterWaiters) {
  ask_one("a", "x");
  for (std::uint64_t i = 0; i < 50; ++i) {
    const std::string key = "k" + std::to_string(i);
    ask({"a", key}, ("cart-" + key).c_str(), 60s, 100 + i);
    ask_one(key.c_str(), "y", 60s, i);
  }
  engine_->close();
  for (std::uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(listener_.outcome_of(i), Outcome::closed);
    EXPECT_EQ(listener_.outcome_of(100 + i), Outcome::closed);
  }
}

TEST_F(KeySetTest, BlocksUntilGranted) {
  engine_.emplace();
  const AcquireResult held = engine_->acquire({.keys = "a", .holder = "x", .ttl = 60s});
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    engine_->release({.keys = "a", .holder = "x", .fence = held->fence});
  });
  const AcquireResult set = engine_->acquire(
      {.keys = std::vector<KeyItem>{"a", "b"}, .holder = "cart", .ttl = 60s, .wait = 60s});
  other.join();
  ASSERT_TRUE(set);
  EXPECT_GT(set->fence, held->fence);
  const AcquireResult late = engine_->acquire(
      {.keys = std::vector<KeyItem>{"b", "c"}, .holder = "late", .ttl = 60s, .wait = 5ms});
  EXPECT_EQ(late.outcome, Outcome::timeout);
  ASSERT_EQ(late.conflicts.size(), 1u);
  EXPECT_EQ(late.conflicts[0].holder, "cart");
}

// Sets often share two keys. Acquiring the keys one by one in the given order would soon deadlock.
TEST_F(KeySetTest, OverlappingSetsDoNotDeadlock) {
  engine_.emplace();
  std::map<std::string, std::atomic<int>> inside;
  for (int i = 0; i < 6; ++i) inside["k" + std::to_string(i)] = 0;
  std::atomic<bool> broken{false};
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    const std::string name = "t" + std::to_string(seed);
    std::vector<std::string> names{"k0", "k1", "k2", "k3", "k4", "k5"};
    for (int round = 0; round < 400; ++round) {
      std::ranges::shuffle(names, random);
      const std::size_t size = 1 + random() % 4;
      const std::vector<KeyItem> keys(names.begin(), names.begin() + static_cast<int>(size));
      const AcquireResult set =
          engine_->acquire({.keys = keys, .holder = name, .ttl = 60s, .wait = 60s});
      if (!set) broken = true;
      for (std::size_t i = 0; i < size; ++i) {
        if (inside.at(names[i])++ != 0) broken = true;
      }
      for (std::size_t i = 0; i < size; ++i) --inside.at(names[i]);
      if (!engine_->release({keys, name, set->fence})) broken = true;
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i);
  threads.clear();
  EXPECT_FALSE(broken);
}

// A set that has ended but still has places blocks no other set. check() visits the sets in the
// order of their addresses; the earlier sets make that differ from the order of queueing.
TEST_F(KeySetTest, EndedSetIsNoDeadlock) {
  const std::vector<std::string> keys{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"};
  std::vector<KeyItem> all{"common"};
  std::vector<Answer> former;
  ask_one("common", "x");
  for (const std::string& key : keys) {
    all.emplace_back(key);
    former.push_back(ask({"common", key}, "former", 10s, former.size()));
  }
  for (const Answer& answer : former) {
    Batch batch(*engine_);
    ASSERT_TRUE(batch.cancel(answer.wait));
  }
  const Answer over = ask(all, "over", 10s, 100);
  for (std::size_t i = 0; i < keys.size(); ++i) ask({"common", keys[i]}, "y", 10s, 101 + i);
  Batch batch(*engine_);
  ASSERT_TRUE(batch.cancel(over.wait));
  EXPECT_EQ(engine_->check(), "");
}

// A crash keeps all events of one append or none.
TEST_F(KeySetTest, SetIsAppendedAsOne) {
  class Appends final : public ForgetfulJournal {
   public:
    Position append(std::span<const Event> events) override {
      sizes.push_back(events.size());
      return ForgetfulJournal::append(events);
    }
    std::vector<std::size_t> sizes;
  } journal;
  engine_.emplace(EngineOptions{.clock = &clock_, .journal = &journal, .sweeper = false});
  const Answer set = ask({"a", "b", "c"}, "cart");
  EXPECT_EQ(journal.sizes, (std::vector<std::size_t>{3}));
  Batch(*engine_).release({std::vector<KeyItem>{"a", "b", "c"}, "cart", set.grant.fence});
  EXPECT_EQ(journal.sizes, (std::vector<std::size_t>{3, 3}));
  engine_.reset();
}

}  // namespace
}  // namespace lockd
