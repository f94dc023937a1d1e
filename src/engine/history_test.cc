// Engine::history() over all shards, and Engine::ages().
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
  using Texts = std::vector<std::string>;
  // Each event as "key holder".
  static Texts read(const Engine& engine, const HistoryQuery& query = {}) {
    Texts texts;
    engine.history(query, [&](const KeyEvent& event) {
      texts.push_back(std::string(event.key) + ' ' + event.holder);
    });
    return texts;
  }

  ManualClock clock_;
  NullListener null_listener_;
};

TEST_F(EngineHistoryTest, LatestEventsOfAllShardsComeFirst) {
  Engine engine(options());
  Texts expected;
  for (int i = 0; i < 500; ++i) {
    clock_.advance(1ns);
    const std::string key = "k" + std::to_string(i);
    EXPECT_TRUE(engine.acquire({.keys = key, .holder = "a", .ttl = 1h}));
    expected.insert(expected.begin(), key + " a");
  }
  expected.resize(100);
  EXPECT_EQ(read(engine), expected);
  expected.resize(7);
  EXPECT_EQ(read(engine, {.events_max = 7}), expected);
  EXPECT_EQ(read(engine, {.events_max = 1000}).size(), 500u);
  EXPECT_EQ(read(engine, {.events_max = 0}), Texts{});
}

// The events lie in different rings.
TEST_F(EngineHistoryTest, EventsOfOneInstantAreInOrder) {
  Engine engine(options());
  Batch batch(engine);
  batch.acquire({.keys = "k", .holder = "a", .ttl = 5s});
  batch.acquire({.keys = "k", .holder = "b", .ttl = 5s, .wait = 60s}, &null_listener_, 1);
  clock_.advance(5s);
  engine.sweep();
  std::vector<Type> types;
  engine.history({}, [&](const KeyEvent& event) { types.push_back(event.type); });
  EXPECT_EQ(types, (std::vector<Type>{Type::granted, Type::expired, Type::queued, Type::granted}));
}

TEST_F(EngineHistoryTest, FiltersSelectEvents) {
  Engine engine(options());
  Session session{.id = 17};
  EXPECT_TRUE(engine.acquire({.keys = "app/a", .holder = "ann", .ttl = 5s}));
  clock_.advance(1s);
  const Time later = clock_.now();
  EXPECT_TRUE(engine.acquire({.keys = "app/b", .holder = Holder(&session, 1), .ttl = 1h}));
  EXPECT_TRUE(engine.acquire({.keys = "web/c", .holder = "ann", .ttl = 1h}));
  clock_.advance(4s);
  engine.sweep();
  EXPECT_EQ(read(engine, {.key = "app/a"}), (Texts{"app/a ann", "app/a ann"}));
  EXPECT_EQ(read(engine, {.key = "app"}), Texts{});
  EXPECT_EQ(read(engine, {.holder = "tcp:17"}), Texts{"app/b tcp:17"});
  EXPECT_EQ(read(engine, {.holder = "tcp:1"}), Texts{});
  EXPECT_EQ(read(engine, {.holder = "ann", .type = Type::expired}), Texts{"app/a ann"});
  EXPECT_EQ(read(engine, {.session = 17}), Texts{"app/b tcp:17"});
  EXPECT_EQ(read(engine, {.since = later}).size(), 3u);
  EXPECT_EQ(read(engine, {.since = later + 1ns}), Texts{"app/a ann"});
  EXPECT_EQ(read(engine, {.prefixes = {"web/", "x"}}), Texts{"web/c ann"});
  EXPECT_EQ(read(engine, {.key = "app/a", .prefixes = {"web/"}}), Texts{});
  EXPECT_EQ(read(engine, {.client = "ann@host:1"}), Texts{});
}

TEST_F(EngineHistoryTest, MaxKeysRejectionIsRecordedOnce) {
  EngineOptions few = options();
  few.keys_max = 1;
  Engine engine(few);
  EXPECT_TRUE(engine.acquire({.keys = "k", .holder = "a", .ttl = 1h}));
  EXPECT_EQ(engine.acquire({.keys = "l", .holder = "b", .ttl = 1h}).outcome, Outcome::max_keys);
  std::vector<Outcome> why;
  engine.history({.type = Type::refused}, [&](const KeyEvent& e) { why.push_back(e.outcome); });
  EXPECT_EQ(why, std::vector<Outcome>{Outcome::max_keys});
}

TEST_F(EngineHistoryTest, ReturnsTheDurablePositionOfTheEvents) {
  ForgetfulJournal journal(ForgetfulJournal::Sync::by_hand);
  EngineOptions kept = options();
  kept.journal = &journal;
  Engine engine(kept);
  Batch batch(engine);
  batch.acquire({.keys = "k", .holder = "a", .ttl = 1h});
  const Position granted = batch.commit();
  const Position position = engine.history({}, [](const KeyEvent&) {});
  EXPECT_EQ(position, granted);
  EXPECT_FALSE(engine.is_durable(position));
  journal.sync();
}

TEST_F(EngineHistoryTest, IsOffByDefault) {
  Engine engine({.clock = &clock_, .sweeper = false});
  EXPECT_TRUE(engine.acquire({.keys = "k", .holder = "a", .ttl = 1h}));
  EXPECT_EQ(read(engine), Texts{});
}

TEST_F(EngineHistoryTest, AgesAreScannedInIntervalsAndGrowBetweenThem) {
  EngineOptions scanning = options();
  scanning.age_interval = 1s;
  Engine engine(scanning);
  Batch batch(engine);
  EXPECT_EQ(engine.ages().oldest_hold.key, "");
  batch.acquire({.keys = "k", .holder = "a", .ttl = 1h});
  clock_.advance(500ms);
  batch.acquire({.keys = "k", .holder = "b", .ttl = 5s, .wait = 1h}, &null_listener_, 1);
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

// An interval scans an eighth of the keys if there are more than one interval's minimum.
TEST_F(EngineHistoryTest, ManyKeysAreScannedInSeveralIntervals) {
  constexpr int kKeys = 100'000;
  EngineOptions scanning = options();
  scanning.age_interval = 1s;
  scanning.slow_hold = 10s;
  scanning.history_size = 64 * 1024 * 1024;
  Engine engine(scanning);
  {
    Batch batch(engine);
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = "k" + std::to_string(i);
      batch.acquire({.keys = key, .holder = "a", .ttl = 1h});
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
