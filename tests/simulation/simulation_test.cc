// Of the simulation itself: that it is the same every time, and that what it checks can fail.
#include "simulation/simulation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "crash/violation.h"
#include "simulation/appended_log.h"
#include "simulation/key_event_checker.h"
#include "simulation/promises.h"

namespace lockd::simulation {
namespace {

using namespace std::chrono_literals;

std::uint64_t hash_of(std::uint64_t seed) {
  Simulation simulation({.seed = seed, .operations = 1500});
  simulation.run();
  return simulation.hash();
}

TEST(Simulation, TheSameSeedIsTheSameWorld) {
  std::uint64_t last = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::uint64_t hash = hash_of(seed);
    EXPECT_EQ(hash, hash_of(seed)) << "seed " << seed;
    EXPECT_NE(hash, last);
    last = hash;
  }
}

// Over some seeds everything that can go wrong does.
TEST(Simulation, EveryFaultStrikes) {
  SimulationStats sum;
  for (std::uint64_t seed = 100; seed < 180; ++seed) {
    Simulation simulation({.seed = seed, .operations = 1500});
    simulation.run();
    sum += simulation.stats();
  }
  for (std::size_t i = 0; i < kFaultKinds; ++i) EXPECT_GT(sum.faults[i], 0U) << kFaultNames[i];
  EXPECT_GT(sum.granted, 0U);
  EXPECT_GT(sum.grants_told_again, 0U);
  EXPECT_GT(sum.granted_shared, 0U);
  EXPECT_GT(sum.granted_several, 0U);
  EXPECT_GT(sum.granted_sets, sum.granted_sets_late);
  EXPECT_GT(sum.granted_sets_late, 0U);
  EXPECT_GT(sum.expired, 0U);
  EXPECT_GT(sum.revoked, 0U);
  EXPECT_GT(sum.resized, 0U);
  EXPECT_GT(sum.disconnected, 0U);
  EXPECT_GT(sum.gave_up, 0U);
}

// The name of the rule that is broken; empty if none is.
std::string broken_by(const std::function<void()>& act) {
  try {
    act();
  } catch (const crash::Violation& violation) {
    const std::string what = violation.what();
    return what.substr(0, what.find(':'));
  }
  return {};
}

constexpr Time kNow{1'000'000'000'000};

Known known(Fence fence, std::uint32_t client, Kind kind = Kind::lock) {
  return {.key = {kind, 0},
          .client = client,
          .holder = "c" + std::to_string(client),
          .fence = fence,
          .ttl = 5s,
          .certain_until = kNow + 5s,
          .connection = client + 1};
}

class PromisesTest : public testing::Test {
 protected:
  std::string grant(const Known& known, Time now = kNow, Fence largest_when_asked = 0) {
    return broken_by([&] { promises_->granted(now, known, largest_when_asked); });
  }
  void begin_anew() { promises_.emplace(1, 2); }

  std::optional<Promises> promises_{std::in_place, 1, 2};
};

TEST_F(PromisesTest, NoMoreAreCertainThanFit) {
  constexpr Kind kSemaphore = Kind::semaphore;
  const auto with = [](Known known, const Terms& terms) {
    known.terms = terms;
    return known;
  };
  const Terms shared{.mode = Mode::shared};
  const struct {
    const char* what;
    std::vector<Known> granted;  // only the last may break a rule
    const char* rule;
    Duration later{};
  } cases[] = {
      {"two of a lock", {known(1, 0), known(2, 1)}, "exclusion"},
      {"the first lease may be over", {known(1, 0), known(2, 1)}, "", 5s},
      {"as many as the limit", {known(1, 0, kSemaphore), known(2, 1, kSemaphore)}, ""},
      {"one more than the limit",
       {known(1, 0, kSemaphore), known(2, 1, kSemaphore), known(3, 2, kSemaphore)},
       "exclusion"},
      {"two readers", {with(known(1, 0), shared), with(known(2, 1), shared)}, ""},
      {"a writer beside readers",
       {with(known(1, 0), shared), with(known(2, 1), shared), known(3, 2)},
       "exclusion"},
      {"a reader beside a writer", {known(1, 0), with(known(2, 1), shared)}, "exclusion"},
      {"more permits than the limit",
       {with(known(1, 0, kSemaphore), {.permits = 2}), known(2, 1, kSemaphore)},
       "exclusion"},
  };
  for (const auto& c : cases) {
    begin_anew();
    for (const Known& granted : c.granted) {
      const bool is_last = granted.fence == c.granted.back().fence;
      EXPECT_EQ(grant(granted, is_last ? kNow + c.later : kNow), is_last ? c.rule : "") << c.what;
    }
  }
}

// As tokens they end with the secret.
TEST_F(PromisesTest, WhoAsksAgainIsGrantedMore) {
  Known first = known(1, 0, Kind::semaphore);
  Known second = known(2, 1, Kind::semaphore);
  first.holder = "00000000000000018a1f0c2d4e6b7391";
  second.holder = "00000000000000028a1f0c2d4e6b7391";
  EXPECT_EQ(grant(first), "");
  EXPECT_EQ(grant(second), "one-secret-one-grant");
  EXPECT_EQ(grant(second, kNow + 5s), "") << "what it had may be over";
}

TEST_F(PromisesTest, AConnectionThatIsLostMayHaveLostItsHoldsUnlessTheyStay) {
  for (const bool are_released : {true, false}) {
    begin_anew();
    EXPECT_EQ(grant(known(1, 0)), "");
    promises_->connection_lost(1, are_released, kNow);
    EXPECT_EQ(grant(known(2, 1)), are_released ? "" : "exclusion");
  }
}

TEST_F(PromisesTest, FencesRise) {
  EXPECT_EQ(grant(known(7, 0), kNow, 6), "");
  EXPECT_EQ(grant(known(7, 0), kNow, 7), "") << "the same again";
  EXPECT_EQ(grant(known(6, 1), kNow + 5s, 7), "fences-rise");
}

TEST_F(PromisesTest, OneFenceOneHolder) {
  EXPECT_EQ(grant(known(7, 0)), "");
  EXPECT_EQ(grant(known(7, 1), kNow + 5s), "one-grant-one-holder");
}

class KeyEventCheckerTest : public testing::Test {
 protected:
  using Type = KeyEvent::Type;

  // `place` is 0 for a grant at once.
  void tell(Type type, Fence fence, std::uint32_t place, std::uint32_t holders,
            std::uint32_t waiters, Terms terms = {}, Kind kind = Kind::lock) {
    const KeyEvent event{.type = type,
                         .kind = kind,
                         .key = key_,
                         .holder = holder_,
                         .fence = fence,
                         .mode = terms.mode,
                         .permits = terms.permits,
                         .place = place,
                         .limit = kind == Kind::lock ? 1u : 3u,
                         .holders = holders,
                         .waiters = waiters};
    static_cast<Observer&>(key_event_checker_).on_key_events({&event, 1}, 0);
  }
  std::string check() {
    return broken_by([&] { key_event_checker_.check(); });
  }

  KeyEventChecker key_event_checker_{2};
  std::string key_ = "key";
  std::string holder_ = "tcp:3";
};

TEST_F(KeyEventCheckerTest, NamesTheRuleThatEventsOfOneKeyBreak) {
  constexpr Terms kShared{.mode = Mode::shared};
  struct Told {
    Type type;
    Fence fence;
    std::uint32_t place;
    std::uint32_t holders;
    std::uint32_t waiters;
    Terms terms{};
  };
  const Told granted{Type::granted, 1, 0, 1, 0};
  const Told shared{Type::granted, 1, 0, 1, 0, kShared};
  const Told queued{Type::queued, 0, 1, 1, 1};
  const Told second{Type::queued, 0, 2, 1, 2};
  const Told released{Type::released, 1, 0, 0, 1};
  const struct {
    const char* what;
    std::vector<Told> told;
    const char* rule;
    Kind kind = Kind::lock;
  } cases[] = {
      {"a queue in order",
       {granted,
        queued,
        second,
        {Type::released, 1, 0, 0, 2},
        {Type::granted, 2, 1, 1, 1},
        {Type::gave_up, 0, 2, 1, 0}},
       ""},
      {"the second before the first",
       {granted, queued, second, {Type::released, 1, 0, 0, 2}, {Type::granted, 2, 2, 1, 1}},
       "first-come"},
      {"past a queue", {granted, queued, released, {Type::granted, 2, 0, 1, 1}}, "first-come"},
      {"two writers", {granted, {Type::granted, 2, 0, 2, 0}}, "shares-or-alone"},
      {"two readers", {shared, {Type::granted, 2, 0, 2, 0, kShared}}, ""},
      {"a writer beside a reader", {shared, {Type::granted, 2, 0, 2, 0}}, "shares-or-alone"},
      {"a writer waits for a reader", {shared, queued}, ""},
      {"a reader past a writer that waits",
       {shared, queued, {Type::granted, 2, 0, 2, 1, kShared}},
       "first-come"},
      {"a reader waits for a reader", {shared, {Type::queued, 0, 1, 1, 1, kShared}}, "conserved"},
      {"more permits than the limit",
       {{Type::granted, 1, 0, 1, 0, {.permits = 2}}, {Type::granted, 2, 0, 2, 0, {.permits = 2}}},
       "holders-bounded",
       Kind::semaphore},
      {"a large request waits for all its permits",
       {granted, {Type::queued, 0, 1, 1, 1, {.permits = 3}}},
       "",
       Kind::semaphore},
      {"a large request waits for nothing",
       {granted, {Type::queued, 0, 1, 1, 1, {.permits = 3}}, released},
       "conserved",
       Kind::semaphore},
      {"a longer queue than may be",
       {granted, queued, second, {Type::queued, 0, 3, 1, 3}},
       "bounded"},
      {"free, and waited for", {granted, queued, released}, "conserved"},
      {"the same fence again", {granted, {Type::released, 1, 0, 0, 0}, granted}, "fences-rise"},
      {"a place that nobody had", {{Type::gave_up, 0, 9, 0, 0}}, "settled-once"},
      {"miscounted", {{Type::granted, 1, 0, 1, 1}}, "counted"},
  };
  for (const auto& c : cases) {
    key_event_checker_.restart();
    for (const Told& t : c.told) {
      tell(t.type, t.fence, t.place, t.holders, t.waiters, t.terms, c.kind);
    }
    EXPECT_EQ(check(), c.rule) << c.what;
  }
}

TEST_F(KeyEventCheckerTest, BesideOneThatWasRecovered) {
  crash::Holds holds;
  holds.apply({.type = Event::Type::granted, .key = "key", .holder = "a", .fence = 1});
  key_event_checker_.recovered(holds);
  tell(Type::granted, 2, 0, 2, 0, {.mode = Mode::shared});
  EXPECT_EQ(check(), "shares-or-alone");
}

// Of sets.

class SetEventsTest : public KeyEventCheckerTest {
 protected:
  // Somebody holds the key "a"; a set waits for it and for "b", which is free.
  SetEventsTest() {
    tell_of("a", "tcp:3", Type::granted, 1, 0, 1, 0);
    tell_of("a", kSet, Type::queued, 0, 1, 1, 1);
    tell_of("b", kSet, Type::queued, 0, 1, 0, 1);
    EXPECT_EQ(check(), "") << "its first waits for another key";
  }

  void tell_of(const std::string& key, const std::string& holder, Type type, Fence fence,
               std::uint32_t place, std::uint32_t holders, std::uint32_t waiters) {
    key_ = key;
    holder_ = holder;
    tell(type, fence, place, holders, waiters);
  }
  void release_a() { tell_of("a", "tcp:3", Type::released, 1, 0, 0, 1); }
  void grant(const std::string& key, Fence fence) {
    tell_of(key, kSet, Type::granted, fence, 1, 1, 0);
  }
  void give_up_a() { tell_of("a", kSet, Type::gave_up, 0, 1, 1, 0); }

  static constexpr auto kSet = "set-c1.1";
};

TEST_F(SetEventsTest, GrantedWhole) {
  release_a();
  grant("a", 2);
  grant("b", 2);
  EXPECT_EQ(check(), "");
  EXPECT_EQ(key_event_checker_.granted_sets_late(), 1U);
  tell_of("a", kSet, Type::disconnected, 2, 0, 0, 0);
  EXPECT_EQ(check(), "all-or-none") << "a part is withdrawn";
}

TEST_F(SetEventsTest, APartIsGranted) {
  grant("b", 2);
  EXPECT_EQ(check(), "all-or-none");
}

TEST_F(SetEventsTest, APartIsGrantedAndAPartGivenUp) {
  grant("b", 2);
  give_up_a();
  EXPECT_EQ(check(), "all-or-none");
}

TEST_F(SetEventsTest, TwoFences) {
  release_a();
  grant("a", 2);
  grant("b", 3);
  EXPECT_EQ(check(), "all-or-none");
}

TEST_F(SetEventsTest, APlaceIsLeft) {
  give_up_a();
  EXPECT_EQ(broken_by([&] { key_event_checker_.check(true); }), "") << "amid a turn";
  EXPECT_EQ(check(), "all-or-none");
}

TEST_F(SetEventsTest, AllAreFreeAndWaitedFor) {
  release_a();
  EXPECT_EQ(check(), "conserved");
}

TEST_F(SetEventsTest, AFreeKeyIsGrantedPastIt) {
  tell_of("b", "tcp:4", Type::granted, 2, 0, 1, 1);
  EXPECT_EQ(check(), "first-come");
}

TEST_F(KeyEventCheckerTest, AHoldOfASessionThatIsOver) {
  tell(Type::granted, 1, 0, 1, 0);
  EXPECT_EQ(broken_by([&] {
              key_event_checker_.check_sessions([](Key, SessionId id) { return id == 3; });
            }),
            "");
  EXPECT_EQ(
      broken_by([&] { key_event_checker_.check_sessions([](Key, SessionId) { return false; }); }),
      "released");
}

class AppendedLogTest : public testing::Test {
 protected:
  static Event granted(Fence fence) {
    return {.type = Event::Type::granted,
            .key = "key",
            .holder = std::string_view("cart-7"),
            .fence = fence,
            .ttl = 5s,
            .expires_at = kNow + 5s};
  }
  static Event ended(Fence fence) {
    return {.type = Event::Type::ended, .key = "key", .fence = fence};
  }
  static crash::Holds holds(Fence fence) {
    crash::Holds holds;
    holds.apply(granted(fence));
    return holds;
  }
  void append(Position end, const Event& event, bool is_description = false) {
    log_.appended(end - 50, end, {&event, 1}, is_description, kNow);
  }
  std::string recover(Position position, const crash::Holds& holds) {
    return broken_by([&] { log_.recovered(position, holds); });
  }

  AppendedLog log_;
};

TEST_F(AppendedLogTest, ALogThatEndsBehindAnAppend) {
  append(100, granted(1));
  append(200, ended(1));
  EXPECT_EQ(recover(100, holds(1)), "");
}

TEST_F(AppendedLogTest, WhatWasToldIsThere) {
  append(100, granted(1));
  log_.settle(100);
  EXPECT_EQ(recover(0, {}), "acknowledged-in-force");
}

TEST_F(AppendedLogTest, NoAppendIsThereInHalf) {
  append(100, granted(1));
  EXPECT_EQ(recover(99, {}), "all-or-nothing");
}

TEST_F(AppendedLogTest, NothingElseIsThere) {
  append(100, granted(1));
  EXPECT_EQ(recover(100, {}), "replay-equals");
}

TEST_F(AppendedLogTest, ASetIsInOneAppend) {
  Event first = granted(1);
  Event second = granted(1);
  first.holder = second.holder = std::string_view("set-c1.1");
  second.key = "other";
  append(100, first);
  EXPECT_EQ(broken_by([&] { append(200, second); }), "durable-as-one");
}

TEST_F(AppendedLogTest, AnAccountTellsTheTruth) {
  append(100, granted(1));
  append(200, granted(1), true);
  EXPECT_EQ(broken_by([&] { append(300, granted(2), true); }), "snapshot-tells-truth");
}

}  // namespace
}  // namespace lockd::simulation
