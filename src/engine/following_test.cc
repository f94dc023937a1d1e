// An engine that follows another, and then leads.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/testing/forgetful_journal.h"
#include "lockd/batch.h"
#include "lockd/clock.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class FollowingTest : public testing::Test {
 protected:
  static Event granted(std::string_view key, Fence fence, Duration ttl) {
    return {.type = Event::Type::granted,
            .key = key,
            .holder = Holder("a"),
            .fence = fence,
            .ttl = ttl,
            .expires_at = Time{} + ttl};
  }
  bool follow(const std::vector<Event>& events) { return journal_.follow(events); }
  // What another engine has appended by then, by its clock.
  bool follow_at(Time now, std::vector<Event> events) {
    for (Event& event : events) event.expires_at = Time{} + (event.expires_at - now);
    return follow(events);
  }

  // Held until then, to the nanosecond. Returns the next fence.
  Fence expect_free_after(Duration left, std::string_view key) {
    const AcquireRequest request{.key = key, .holder = "b", .ttl = 1s};
    clock_.advance(left - 1ns);
    EXPECT_EQ(engine_.acquire(request).outcome, Outcome::held);
    clock_.advance(1ns);
    const GrantResult next = engine_.acquire(request);
    EXPECT_EQ(next.outcome, Outcome::ok);
    return next.outcome == Outcome::ok ? next->fence : 0;
  }

  EngineOptions follower() {
    journal_.set_state(Journal::State::following);
    return {.shards = 4, .clock = &clock_, .journal = &journal_, .sweeper = false};
  }

  ManualClock clock_;
  ForgetfulJournal journal_;
  Engine engine_{follower()};
};

TEST_F(FollowingTest, RefusesWhatAsksForALeader) {
  ASSERT_TRUE(follow({granted("k", 7, 1s)}));
  EXPECT_EQ(engine_.acquire({.key = "x", .holder = "b", .ttl = 1s}).outcome, Outcome::not_leader);
  EXPECT_EQ(engine_.renew({.key = "k", .holder = "a", .fence = 7}).outcome, Outcome::not_leader);
  EXPECT_EQ(engine_.release({.key = "k", .holder = "a", .fence = 7}), Outcome::not_leader);
}

TEST_F(FollowingTest, ShowsWhatIsHeldAndEndsNothing) {
  ASSERT_TRUE(follow({granted("k", 7, 1s)}));
  clock_.advance(1h);
  engine_.sweep();
  const auto status = engine_.status(Kind::lock, "k");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->holds.at(0).fence, 7);
  EXPECT_EQ(status->holds.at(0).remaining, 0s);
  EXPECT_TRUE(journal_.events().empty());

  ASSERT_TRUE(follow({{.type = Event::Type::ended, .key = "k", .fence = 7}}));
  EXPECT_FALSE(engine_.status(Kind::lock, "k"));
}

TEST_F(FollowingTest, ShowsWhatIsLeftOfALease) {
  ASSERT_TRUE(follow({granted("k", 7, 10s)}));
  clock_.advance(3s);
  const auto status = engine_.status(Kind::lock, "k");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->holds.at(0).remaining, 7s);
  EXPECT_EQ(status->holds.at(0).held, 3s);
  ListPlace place;
  engine_.list_some(place, 10, [](const KeyStatus& key) {
    EXPECT_EQ(key.holds.at(0).remaining, 7s);
    EXPECT_EQ(key.holds.at(0).held, 3s);
  });
}

TEST_F(FollowingTest, RefusesWhatContradicts) {
  EXPECT_TRUE(follow({granted("k", 7, 1s)}));
  EXPECT_TRUE(follow({granted("k", 7, 1s)}));  // once more is no news
  EXPECT_FALSE(follow({granted("k", 8, 1s)}));
}

TEST_F(FollowingTest, ALeaseThatWasRenewedForLongerIsThatLong) {
  ManualClock clock;
  ForgetfulJournal journal;
  Engine leader({.clock = &clock, .journal = &journal, .sweeper = false});
  const GrantResult grant = leader.acquire({.key = "k", .holder = "a", .ttl = 1s});
  ASSERT_EQ(leader.renew({.key = "k", .holder = "a", .fence = grant->fence}, 10s).outcome,
            Outcome::ok);
  ASSERT_TRUE(follow_at(clock.now(), journal.events()));
  journal_.lead();
  clock_.advance(10s - 1ns);
  engine_.sweep();
  EXPECT_EQ(engine_.acquire({.key = "k", .holder = "b", .ttl = 1s}).outcome, Outcome::held);
  // What a renewal is by default is what the grant was.
  EXPECT_EQ(engine_.renew({.key = "k", .holder = "a", .fence = grant->fence})->ttl, 1s);
}

TEST_F(FollowingTest, AnAccountTellsOfALeaseThatWasRenewedForLonger) {
  ManualClock clock;
  ForgetfulJournal journal;
  Engine leader({.clock = &clock, .journal = &journal, .sweeper = false});
  const GrantResult grant = leader.acquire({.key = "k", .holder = "a", .ttl = 1s});
  ASSERT_EQ(leader.renew({.key = "k", .holder = "a", .fence = grant->fence}, 10s).outcome,
            Outcome::ok);
  const auto account = static_cast<std::ptrdiff_t>(journal.describe());
  const std::vector<Event> described = journal.events();
  ASSERT_TRUE(follow_at(clock.now(), {described.begin() + account, described.end()}));
  journal_.lead();
  clock_.advance(10s - 1ns);
  engine_.sweep();
  EXPECT_EQ(engine_.acquire({.key = "k", .holder = "b", .ttl = 1s}).outcome, Outcome::held);
}

// However often another leads: none begins it anew.
TEST_F(FollowingTest, ALeaseEndsWhenItsTimeSinceTheTellingIsOver) {
  ASSERT_TRUE(follow({granted("k", 7, 10s)}));
  clock_.advance(6s);
  journal_.lead(0, 2s);
  EXPECT_GT(expect_free_after(4s, "k"), 7);
}

TEST_F(FollowingTest, CountsFromTheLastRenewal) {
  ASSERT_TRUE(follow({granted("k", 7, 10s)}));
  clock_.advance(6s);
  Event renewed = granted("k", 7, 10s);
  renewed.type = Event::Type::renewed;
  ASSERT_TRUE(follow({renewed}));
  clock_.advance(5s);
  journal_.lead(0, 2s);
  expect_free_after(5s, "k");
}

// Whoever lives could not renew while nobody led.
TEST_F(FollowingTest, LeavesEnoughOfALeaseToRenewIt) {
  ASSERT_TRUE(follow({granted("long", 7, 10s), granted("short", 8, 1s)}));
  clock_.advance(1h);
  journal_.lead(0, 2s);
  expect_free_after(1s, "short");
  clock_.advance(1s - 1ns);
  EXPECT_EQ(engine_.acquire({.key = "long", .holder = "b", .ttl = 1s}).outcome, Outcome::held);
  EXPECT_EQ(engine_.renew({.key = "long", .holder = "a", .fence = 7}).outcome, Outcome::ok);
  clock_.advance(10s - 1ns);
  EXPECT_EQ(engine_.acquire({.key = "long", .holder = "b", .ttl = 1s}).outcome, Outcome::held);
}

TEST_F(FollowingTest, OwnersKeepWhatTheyHeld) {
  ASSERT_TRUE(follow({granted("k", 7, 10s)}));
  journal_.lead();
  EXPECT_EQ(engine_.renew({.key = "k", .holder = "a", .fence = 7}).outcome, Outcome::ok);
  EXPECT_EQ(engine_.release({.key = "k", .holder = "a", .fence = 7}), Outcome::ok);
}

TEST_F(FollowingTest, FencesGoOnAboveAllThatWereSeenOfAnyKey) {
  ASSERT_TRUE(follow({granted("k", 7, 10s), {.type = Event::Type::fence_floor, .fence = 90}}));
  journal_.lead();
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
    EXPECT_GT(engine_.acquire({.key = key, .holder = "b", .ttl = 1s})->fence, 90) << key;
  }
}

// Those of a server that keeps nothing begin with the clock too.
TEST_F(FollowingTest, FencesOfAChainThatBeginsAreAboveThoseOfAServerWithoutOne) {
  clock_.advance(std::chrono::hours(24 * 365 * 56));
  Engine alone({.clock = &clock_, .sweeper = false});
  const Fence before = alone.acquire({.key = "k", .holder = "a", .ttl = 1s})->fence;
  EXPECT_GT(before, Fence{1} << 48);
  clock_.advance(1s);
  journal_.lead(1);
  EXPECT_GT(engine_.acquire({.key = "k", .holder = "a", .ttl = 1s})->fence, before);
}

TEST_F(FollowingTest, FencesOfAChainGoOnWhateverTheClockSays) {
  clock_.advance(std::chrono::hours(24 * 365 * 56));
  ASSERT_TRUE(follow({granted("k", 7, 10s)}));
  journal_.lead(1);
  EXPECT_EQ(engine_.acquire({.key = "x", .holder = "a", .ttl = 1s})->fence, 8);
}

TEST(FenceFloor, IsBelowEveryFence) {
  ManualClock clock;
  for (const bool has_journal : {false, true}) {
    ForgetfulJournal journal;
    Engine engine({.shards = 4,
                   .fence_floor = 1000,
                   .clock = &clock,
                   .journal = has_journal ? &journal : nullptr,
                   .sweeper = false});
    for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
      EXPECT_GT(engine.acquire({.key = key, .holder = "b", .ttl = 1s})->fence, 1000) << key;
    }
  }
  EXPECT_THROW(Engine({.fence_floor = kFenceMax + 1}), std::invalid_argument);
}

TEST_F(FollowingTest, KnowsOfNoKeyThatItsFenceIsLessThanTheFloor) {
  ASSERT_TRUE(follow({{.type = Event::Type::fence_floor, .fence = 90}}));
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
    EXPECT_EQ(engine_.fence(key)->fence, 90) << key;
  }
}

// It appends something that changes nothing: only who still leads can.
TEST_F(FollowingTest, ABarrierRestsOnWhatIsAppendedAfterIt) {
  Batch batch(engine_);
  batch.barrier();
  EXPECT_EQ(batch.commit(), 0);
  EXPECT_TRUE(journal_.events().empty());
  ASSERT_TRUE(follow({granted("k", 7, 10s)}));
  journal_.lead(5);
  batch.barrier();
  const Position first = batch.commit();
  EXPECT_EQ(journal_.events().size(), 1U);
  batch.barrier();
  EXPECT_GT(batch.commit(), first);

  ForgetfulJournal next;
  next.set_state(Journal::State::following);
  Engine follower({.clock = &clock_, .journal = &next, .sweeper = false});
  EXPECT_TRUE(next.follow(journal_.events()));
}

// The leader may have let in more keys than this one would: what the chain says is held.
TEST(FollowingBeyondItsCaps, HoldsWhatTheLeaderGrantedAndGrantsNothingUntilBelow) {
  constexpr std::uint64_t kKeysMax = 3;
  constexpr Fence kKeys = 10;
  ManualClock clock;
  ForgetfulJournal journal;
  journal.set_state(Journal::State::following);
  Engine engine(
      {.shards = 4, .keys_max = kKeysMax, .clock = &clock, .journal = &journal, .sweeper = false});
  const auto key = [](Fence fence) { return "k" + std::to_string(fence); };
  for (Fence fence = 1; fence <= kKeys; ++fence) {
    const std::string name = key(fence);
    const Event granted{.type = Event::Type::granted,
                        .key = name,
                        .holder = Holder("a"),
                        .fence = fence,
                        .ttl = 60s,
                        .expires_at = Time{} + 60s};
    ASSERT_TRUE(journal.follow({&granted, 1}));
  }
  EXPECT_EQ(engine.stats().keys, kKeys);
  const std::string first = key(1);
  const Event ended{.type = Event::Type::ended, .key = first, .fence = 1};
  ASSERT_TRUE(journal.follow({&ended, 1}));
  journal.lead();
  const auto acquire = [&] {
    return engine.acquire({.key = "new", .holder = "b", .ttl = 60s}).outcome;
  };
  for (Fence fence = 2; fence <= kKeys; ++fence) {
    EXPECT_EQ(acquire(), Outcome::max_keys) << fence;
    const std::string name = key(fence);
    EXPECT_EQ(engine.status(Kind::lock, name)->holds.size(), 1u);
    EXPECT_EQ(engine.renew({.key = name, .holder = "a", .fence = fence}).outcome, Outcome::ok);
    if (kKeys - fence + 1 <= kKeysMax) break;
    EXPECT_EQ(engine.release({.key = name, .holder = "a", .fence = fence}), Outcome::ok);
  }
  EXPECT_EQ(engine.check(), "");
  const std::string last = key(kKeys);
  EXPECT_EQ(engine.release({.key = last, .holder = "a", .fence = kKeys}), Outcome::ok);
  EXPECT_EQ(acquire(), Outcome::ok);
  EXPECT_EQ(engine.acquire({.key = "more", .holder = "b", .ttl = 60s}).outcome, Outcome::max_keys);
  EXPECT_EQ(engine.check(), "");
}

// Nothing has been appended since it leads, and still its answers rest on that it does.
TEST_F(FollowingTest, RestsEveryAnswerOnItsBeginning) {
  ASSERT_TRUE(follow({granted("k", 7, 10s)}));
  journal_.lead(5);
  ListPlace place;
  EXPECT_EQ(engine_.list_some(place, 10, [](const KeyStatus&) {}), 5);
}

}  // namespace
}  // namespace lockd
