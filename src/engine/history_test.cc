// What happened, over all shards: the latest first, by whom and to what, and what it rests on.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "engine/testing/forgetful_journal.h"
#include "engine/testing/listeners.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Type = KeyEvent::Type;

class EngineHistoryTest : public ::testing::Test {
 protected:
  EngineOptions options() {
    return {.history_size = 4 * 1024 * 1024, .clock = &clock_, .sweeper = false};
  }
  using Told = std::vector<std::string>;
  // "key holder"
  static Told read(const Engine& engine, const HistoryQuery& query = {}) {
    Told told;
    engine.history(query, [&](const KeyEvent& event) {
      told.push_back(std::string(event.key) + ' ' + event.holder);
    });
    return told;
  }

  ManualClock clock_;
  DeafListener nobody_;
};

TEST_F(EngineHistoryTest, TellsTheLatestFirstOverAllShards) {
  Engine engine(options());
  Told expected;
  for (int i = 0; i < 500; ++i) {
    clock_.advance(1ns);
    const std::string key = "k" + std::to_string(i);
    EXPECT_TRUE(engine.acquire({.key = key, .holder = "a", .ttl = 1h}));
    expected.insert(expected.begin(), key + " a");
  }
  expected.resize(100);
  EXPECT_EQ(read(engine), expected);
  expected.resize(7);
  EXPECT_EQ(read(engine, {.events_max = 7}), expected);
  EXPECT_EQ(read(engine, {.events_max = 1000}).size(), 500u);
  EXPECT_EQ(read(engine, {.events_max = 0}), Told{});
}

// What happened at one instant is in order too, though it lies in different rings.
TEST_F(EngineHistoryTest, AnInstantHasItsOrder) {
  Engine engine(options());
  Batch batch(engine);
  batch.acquire({.key = "k", .holder = "a", .ttl = 5s});
  batch.acquire({.key = "k", .holder = "b", .ttl = 5s, .wait = 60s}, &nobody_, 1);
  clock_.advance(5s);
  engine.sweep();
  std::vector<Type> types;
  engine.history({}, [&](const KeyEvent& event) { types.push_back(event.type); });
  EXPECT_EQ(types, (std::vector<Type>{Type::granted, Type::expired, Type::queued, Type::granted}));
}

TEST_F(EngineHistoryTest, AnswersWhatIsAskedFor) {
  Engine engine(options());
  Session session{.id = 17};
  EXPECT_TRUE(engine.acquire({.key = "app/a", .holder = "ann", .ttl = 5s}));
  clock_.advance(1s);
  const Time later = clock_.now();
  EXPECT_TRUE(engine.acquire({.key = "app/b", .holder = Holder(&session, 1), .ttl = 1h}));
  EXPECT_TRUE(engine.acquire({.key = "web/c", .holder = "ann", .ttl = 1h}));
  clock_.advance(4s);
  engine.sweep();
  EXPECT_EQ(read(engine, {.key = "app/a"}), (Told{"app/a ann", "app/a ann"}));
  EXPECT_EQ(read(engine, {.key = "app"}), Told{});
  EXPECT_EQ(read(engine, {.holder = "tcp:17"}), Told{"app/b tcp:17"});
  EXPECT_EQ(read(engine, {.holder = "tcp:1"}), Told{});
  EXPECT_EQ(read(engine, {.holder = "ann", .type = Type::expired}), Told{"app/a ann"});
  EXPECT_EQ(read(engine, {.session = 17}), Told{"app/b tcp:17"});
  EXPECT_EQ(read(engine, {.since = later}).size(), 3u);
  EXPECT_EQ(read(engine, {.since = later + 1ns}), Told{"app/a ann"});
  EXPECT_EQ(read(engine, {.prefixes = {"web/", "x"}}), Told{"web/c ann"});
  EXPECT_EQ(read(engine, {.key = "app/a", .prefixes = {"web/"}}), Told{});
  EXPECT_EQ(read(engine, {.client = "ann@host:1"}), Told{});
}

TEST_F(EngineHistoryTest, ARefusalForWantOfKeysIsToldOnce) {
  EngineOptions few = options();
  few.keys_max = 1;
  Engine engine(few);
  EXPECT_TRUE(engine.acquire({.key = "k", .holder = "a", .ttl = 1h}));
  EXPECT_EQ(engine.acquire({.key = "l", .holder = "b", .ttl = 1h}).outcome, Outcome::max_keys);
  std::vector<Outcome> why;
  engine.history({.type = Type::refused}, [&](const KeyEvent& e) { why.push_back(e.outcome); });
  EXPECT_EQ(why, std::vector<Outcome>{Outcome::max_keys});
}

// Nobody is told before it is durable.
TEST_F(EngineHistoryTest, SaysWhatItRestsOn) {
  ForgetfulJournal journal(ForgetfulJournal::Sync::by_hand);
  EngineOptions kept = options();
  kept.journal = &journal;
  Engine engine(kept);
  Batch batch(engine);
  batch.acquire({.key = "k", .holder = "a", .ttl = 1h});
  const Position granted = batch.commit();
  const Position position = engine.history({}, [](const KeyEvent&) {});
  EXPECT_EQ(position, granted);
  EXPECT_FALSE(engine.is_durable(position));
  journal.sync();
}

TEST_F(EngineHistoryTest, IsOffUnlessASizeIsGiven) {
  Engine engine({.clock = &clock_, .sweeper = false});
  EXPECT_TRUE(engine.acquire({.key = "k", .holder = "a", .ttl = 1h}));
  EXPECT_EQ(read(engine), Told{});
}

// Ages.

TEST_F(EngineHistoryTest, AgesAreLookedAtInIntervalsAndGrowBetweenThem) {
  EngineOptions looking = options();
  looking.age_interval = 1s;
  Engine engine(looking);
  Batch batch(engine);
  EXPECT_EQ(engine.ages().oldest_hold.key, "");
  batch.acquire({.key = "k", .holder = "a", .ttl = 1h});
  clock_.advance(500ms);
  batch.acquire({.key = "k", .holder = "b", .ttl = 5s, .wait = 1h}, &nobody_, 1);
  EXPECT_EQ(engine.sweep(), clock_.now() + 1s);
  clock_.advance(300ms);
  engine.sweep();
  const Ages ages = engine.ages();
  EXPECT_EQ(ages.oldest_hold.key, "k");
  EXPECT_EQ(ages.oldest_hold.age, 800ms);
  EXPECT_EQ(ages.oldest_wait.key, "k");
  EXPECT_EQ(ages.oldest_wait.age, 300ms);
  EXPECT_EQ(ages.longest_queue.waiters, 1u);
  engine.close();
  clock_.advance(700ms);
  engine.sweep();
  EXPECT_EQ(engine.ages().oldest_wait.age, 0s);
  EXPECT_EQ(engine.ages().longest_queue.waiters, 0u);
}

// More keys than are looked at in one interval: an eighth of them, and in the end all.
TEST_F(EngineHistoryTest, ManyKeysAreLookedAtInSeveralIntervals) {
  constexpr int kKeys = 100'000;
  EngineOptions looking = options();
  looking.age_interval = 1s;
  looking.slow_hold = 10s;
  looking.history_size = 64 * 1024 * 1024;
  Engine engine(looking);
  {
    Batch batch(engine);
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = "k" + std::to_string(i);
      batch.acquire({.key = key, .holder = "a", .ttl = 1h});
    }
  }
  const auto count_slow = [&] {
    std::size_t count = 0;
    engine.history({.type = Type::slow_hold, .events_max = 2 * kKeys}, [&](const KeyEvent& event) {
      EXPECT_GE(event.lasted, 10s);
      ++count;
    });
    return count;
  };
  clock_.advance(10s - 1ns);
  engine.sweep();
  EXPECT_EQ(count_slow(), 0u);
  for (int i = 0; i < 4; ++i) {
    clock_.advance(1s);
    engine.sweep();
  }
  EXPECT_EQ(count_slow(), std::size_t{kKeys});
}

}  // namespace
}  // namespace lockd
