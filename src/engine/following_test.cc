// An engine that follows a leader, and then leads.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
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

  // Expects that the key is held for exactly `left`. Returns the next fence.
  Fence expect_free_after(Duration left, std::string_view key) {
    const AcquireRequest request{.keys = key, .holder = "b", .ttl = 1s};
    clock_.advance(left - 1ns);
    EXPECT_EQ(engine_.acquire(request).outcome, Outcome::held);
    clock_.advance(1ns);
    const AcquireResult next = engine_.acquire(request);
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

TEST_F(FollowingTest, FollowerRejectsRequestsForALeader) {
  ASSERT_TRUE(follow({granted("k", 7, 1s)}));
  EXPECT_EQ(engine_.acquire({.keys = "x", .holder = "b", .ttl = 1s}).outcome, Outcome::not_leader);
  EXPECT_EQ(engine_.renew({.keys = "k", .holder = "a", .fence = 7}).outcome, Outcome::not_leader);
  EXPECT_EQ(engine_.release({.keys = "k", .holder = "a", .fence = 7}).outcome, Outcome::not_leader);
}

TEST_F(FollowingTest, FollowerShowsHoldsAndEndsNone) {
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

TEST_F(FollowingTest, FollowerShowsTheRemainingLease) {
  ASSERT_TRUE(follow({granted("k", 7, 10s)}));
  clock_.advance(3s);
  const auto status = engine_.status(Kind::lock, "k");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->holds.at(0).remaining, 7s);
  EXPECT_EQ(status->holds.at(0).held, 3s);
  ListCursor cursor;
  engine_.list_some(cursor, 10, [](const KeyStatus& key) {
    EXPECT_EQ(key.holds.at(0).remaining, 7s);
    EXPECT_EQ(key.holds.at(0).held, 3s);
  });
}

TEST_F(FollowingTest, FollowerRejectsContradictoryEvents) {
  EXPECT_TRUE(follow({granted("k", 7, 1s)}));
  EXPECT_TRUE(follow({granted("k", 7, 1s)}));  // repeated: no contradiction
  EXPECT_FALSE(follow({granted("k", 8, 1s)}));
}

// The follower learns of the renewal by an event or by a snapshot.
TEST_F(FollowingTest, LongerRenewedLeaseSurvivesFailover) {
  for (const bool by_snapshot : {false, true}) {
    ManualClock clock;
    ForgetfulJournal leader_journal;
    ForgetfulJournal journal;
    journal.set_state(Journal::State::following);
    Engine engine({.clock = &clock, .journal = &journal, .sweeper = false});
    Engine leader({.clock = &clock, .journal = &leader_journal, .sweeper = false});
    const AcquireResult grant = leader.acquire({.keys = "k", .holder = "a", .ttl = 1s});
    const HoldId hold{.keys = "k", .holder = "a", .fence = grant->fence};
    ASSERT_EQ(leader.renew(hold, 10s).outcome, Outcome::ok);
    const std::size_t snapshot = leader_journal.describe();
    std::vector<Event> events = leader_journal.events();
    if (by_snapshot) {
      events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(snapshot));
    } else {
      events.resize(snapshot);
    }
    for (Event& event : events) event.expires_at = Time{} + (event.expires_at - clock.now());
    ASSERT_TRUE(journal.follow(events));
    journal.lead();
    clock.advance(10s - 1ns);
    engine.sweep();
    EXPECT_EQ(engine.acquire({.keys = "k", .holder = "b", .ttl = 1s}).outcome, Outcome::held);
    // A renewal without `ttl` uses the grant's own lease.
    EXPECT_EQ(engine.renew(hold)->ttl, 1s);
  }
}

// A failover does not restart the lease.
TEST_F(FollowingTest, LeaseContinuesAfterFailover) {
  ASSERT_TRUE(follow({granted("k", 7, 10s)}));
  clock_.advance(6s);
  journal_.lead(0, 2s);
  EXPECT_GT(expect_free_after(4s, "k"), 7);
}

TEST_F(FollowingTest, LeaseCountsFromTheLastRenewal) {
  ASSERT_TRUE(follow({granted("k", 7, 10s)}));
  clock_.advance(6s);
  Event renewed = granted("k", 7, 10s);
  renewed.type = Event::Type::renewed;
  ASSERT_TRUE(follow({renewed}));
  clock_.advance(5s);
  journal_.lead(0, 2s);
  expect_free_after(5s, "k");
}

// Holders could not renew while there was no leader.
TEST_F(FollowingTest, NewLeaderLeavesTimeForRenewals) {
  ASSERT_TRUE(follow({granted("long", 7, 10s), granted("short", 8, 1s)}));
  clock_.advance(1h);
  journal_.lead(0, 2s);
  expect_free_after(1s, "short");
  clock_.advance(1s - 1ns);
  EXPECT_EQ(engine_.acquire({.keys = "long", .holder = "b", .ttl = 1s}).outcome, Outcome::held);
  EXPECT_EQ(engine_.renew({.keys = "long", .holder = "a", .fence = 7}).outcome, Outcome::ok);
  clock_.advance(10s - 1ns);
  EXPECT_EQ(engine_.acquire({.keys = "long", .holder = "b", .ttl = 1s}).outcome, Outcome::held);
}

TEST_F(FollowingTest, FencesContinueAboveTheLargestOfAnyKey) {
  ASSERT_TRUE(follow({granted("k", 7, 10s), {.type = Event::Type::fence_floor, .fence = 90}}));
  journal_.lead();
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
    EXPECT_GT(engine_.acquire({.keys = key, .holder = "b", .ttl = 1s})->fence, 90) << key;
  }
}

// Fences of a server without a journal start from the clock.
TEST_F(FollowingTest, FencesOfANewClusterExceedThoseOfAServerWithoutAJournal) {
  clock_.advance(std::chrono::hours(24 * 365 * 56));
  Engine alone({.clock = &clock_, .sweeper = false});
  const Fence before = alone.acquire({.keys = "k", .holder = "a", .ttl = 1s})->fence;
  EXPECT_GT(before, Fence{1} << 48);
  clock_.advance(1s);
  journal_.lead(1);
  EXPECT_GT(engine_.acquire({.keys = "k", .holder = "a", .ttl = 1s})->fence, before);
}

TEST_F(FollowingTest, FencesContinueRegardlessOfTheClock) {
  clock_.advance(std::chrono::hours(24 * 365 * 56));
  ASSERT_TRUE(follow({granted("k", 7, 10s)}));
  journal_.lead(1);
  EXPECT_EQ(engine_.acquire({.keys = "x", .holder = "a", .ttl = 1s})->fence, 8);
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
      EXPECT_GT(engine.acquire({.keys = key, .holder = "b", .ttl = 1s})->fence, 1000) << key;
    }
  }
  EXPECT_THROW(Engine({.fence_floor = kFenceMax + 1}), std::invalid_argument);
}

TEST_F(FollowingTest, UnknownKeyHasTheFenceFloor) {
  ASSERT_TRUE(follow({{.type = Event::Type::fence_floor, .fence = 90}}));
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
    EXPECT_EQ(engine_.fence(key)->fence, 90) << key;
  }
}

// The barrier appends an event, which only the current leader can.
TEST_F(FollowingTest, BarrierDependsOnALaterEvent) {
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

// Before the new leader appends anything, its answers depend on its leadership.
TEST_F(FollowingTest, AnswersDependOnTheLeadersFirstPosition) {
  ASSERT_TRUE(follow({granted("k", 7, 10s)}));
  journal_.lead(5);
  ListCursor cursor;
  EXPECT_EQ(engine_.list_some(cursor, 10, [](const KeyStatus&) {}), 5);
}

}  // namespace
}  // namespace lockd
