// Asking again by a secret that the client chose: what is there, and whose it is then.
#include <string>

#include "core/lock_table.h"
#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

class AskAgainTest : public LockTableTest {
 protected:
  static constexpr std::uint64_t kSecret = 77;

  static Holder chosen(SessionId session, std::uint64_t secret = kSecret) {
    return Holder::of_secret(secret, session).chosen();
  }
  std::uint64_t holds_of(SessionId session) const { return table_->owned(session).holds; }
  std::uint64_t places_of(SessionId session) const { return table_->owned(session).places; }
};

TEST_F(AskAgainTest, AShorterLeaseNeitherShortensTheHoldNorItsOwnTtl) {
  const Fence fence = grant("k", "cart-1", {.ttl = 60s});
  const auto again = acquire("k", "cart-1", {.ttl = 1ms});
  EXPECT_EQ(again.outcome, Outcome::ok);
  EXPECT_EQ(again.grant.fence, fence);
  EXPECT_EQ(again.grant.ttl, 60s);
  EXPECT_EQ(again.grant.expires_at, now_ + 60s);
  pass(59s);
  EXPECT_EQ(acquire("k", "cart-2").outcome, Outcome::held);
}

TEST_F(AskAgainTest, ADeadlineThatARenewalMovedFurtherStays) {
  const Fence fence = grant("k", "cart-1", {.ttl = 10s});
  renew("k", "cart-1", fence, 60s);
  const auto again = acquire("k", "cart-1", {.ttl = 10s});
  EXPECT_EQ(again.grant.ttl, 10s);
  EXPECT_EQ(again.grant.expires_at, now_ + 60s);
}

TEST_F(AskAgainTest, TheReplySaysAtMostWhatRemains) {
  reset({.ttl_max = 20s});  // less than the ttl of the hold that is recovered
  table_->apply({.type = Event::Type::granted,
                 .key = "k",
                 .holder = "cart-1",
                 .fence = 7,
                 .ttl = 60s,
                 .expires_at = now_ + 10s});
  const auto again = acquire("k", "cart-1", {.ttl = 60s});
  EXPECT_EQ(again.grant.expires_at, now_ + 20s);
  EXPECT_EQ(again.grant.ttl, 20s);
}

TEST_F(AskAgainTest, TheGrantInForceComesBackWithTheLeaseOfThisRequest) {
  const Fence fence = grant("k", chosen(1), {.ttl = 10s});
  pass(4s);
  const auto again = acquire("k", chosen(2), {.ttl = 20s});
  EXPECT_EQ(again.outcome, Outcome::ok);
  EXPECT_EQ(again.grant.fence, fence);
  EXPECT_EQ(again.grant.secret, kSecret);
  EXPECT_EQ(again.grant.ttl, 20s);
  EXPECT_EQ(again.grant.expires_at, now_ + 20s);
}

TEST_F(AskAgainTest, TheHoldIsTheLaterSessionsAndTheEndOfTheEarlierReleasesNothing) {
  const Fence fence = grant("k", chosen(1));
  EXPECT_EQ(acquire("k", chosen(2)).grant.fence, fence);
  EXPECT_EQ(holds_of(1), 0u);
  EXPECT_EQ(holds_of(2), 1u);
  end_session(1);
  EXPECT_EQ(acquire("k", "other").outcome, Outcome::held);
  end_session(2);
  EXPECT_EQ(acquire("k", "other").outcome, Outcome::ok);
}

TEST_F(AskAgainTest, AnEarlierSessionIsToldOfTheGrantAndDoesNotTakeItOver) {
  const Fence fence = grant("k", chosen(2));
  EXPECT_EQ(acquire("k", chosen(1)).grant.fence, fence);
  EXPECT_EQ(holds_of(2), 1u);
  EXPECT_EQ(holds_of(1), 0u);
  end_session(1);
  EXPECT_EQ(acquire("k", "other").outcome, Outcome::held);
}

TEST_F(AskAgainTest, AfterAReleaseOrAnExpiryItAsksAnew) {
  const Fence first = grant("k", chosen(1), {.ttl = 5s});
  release("k", chosen(1), first);
  const Fence second = grant("k", chosen(1), {.ttl = 5s});
  EXPECT_GT(second, first);
  pass(5s);
  EXPECT_GT(grant("k", chosen(1)), second);
}

TEST_F(AskAgainTest, AnotherSecretIsSomebodyElse) {
  grant("k", chosen(1));
  EXPECT_EQ(acquire("k", chosen(1, 78)).outcome, Outcome::held);
  EXPECT_EQ(acquire("k", secret(2, kSecret)).outcome, Outcome::held);  // nobody chose it
  EXPECT_EQ(acquire("other", chosen(1)).outcome, Outcome::ok);
}

TEST_F(AskAgainTest, ASecretThatNobodyChoseIsNotFound) {
  grant("k", secret(1, kSecret));
  EXPECT_EQ(acquire("k", chosen(2)).outcome, Outcome::held);
  grant("s", secret(1, kSecret), {.kind = kSemaphore, .limit = 2});
  grant("s", chosen(2), {.kind = kSemaphore, .limit = 2});
  EXPECT_EQ(acquire("s", chosen(3, 79), {.kind = kSemaphore, .limit = 2}).outcome, Outcome::held);
}

TEST_F(AskAgainTest, OfManyHoldersOnePermitIsTakenOnce) {
  const Ask of_three{.kind = kSemaphore, .limit = 3};
  grant("s", "a name", of_three);
  const Fence fence = grant("s", chosen(1), of_three);
  EXPECT_EQ(acquire("s", chosen(2), of_three).grant.fence, fence);
  EXPECT_EQ(acquire("s", "another name", of_three).outcome, Outcome::ok);
  EXPECT_EQ(acquire("s", "one too many", of_three).outcome, Outcome::held);
}

TEST_F(AskAgainTest, SharedLocksKnowWhoAsksAgain) {
  const Ask shared{.mode = Mode::shared};
  grant("k", chosen(1, 1), shared);
  const Fence fence = grant("k", chosen(1, 2), shared);
  EXPECT_EQ(acquire("k", chosen(2, 2), shared).grant.fence, fence);
  EXPECT_EQ(table_->stats().shared_holds, 2u);
}

TEST_F(AskAgainTest, OtherTermsAreRefusedAndChangeNothing) {
  grant("k", chosen(1), {.ttl = 10s});
  EXPECT_EQ(acquire("k", chosen(2), {.mode = Mode::shared}).outcome, Outcome::mode_mismatch);
  EXPECT_EQ(enqueue("k", chosen(2), {.mode = Mode::shared}).outcome, Outcome::mode_mismatch);
  grant("s", chosen(1), {.kind = kSemaphore, .limit = 3, .permits = 2});
  EXPECT_EQ(acquire("s", chosen(2), {.kind = kSemaphore, .limit = 3}).outcome,
            Outcome::permits_mismatch);
  EXPECT_EQ(acquire("s", chosen(2), {.kind = kSemaphore, .limit = 4, .permits = 2}).outcome,
            Outcome::limit_mismatch);
  EXPECT_EQ(holds_of(1), 2u);
  EXPECT_EQ(holds_of(2), 0u);
}

TEST_F(AskAgainTest, OtherTermsThanThoseOfThePlaceAreRefused) {
  grant("k", "a");
  acquire("k", chosen(1), {.wait = 10s, .id = 1});
  EXPECT_EQ(acquire("k", chosen(2), {.wait = 10s, .id = 2, .mode = Mode::shared}).outcome,
            Outcome::mode_mismatch);
  EXPECT_EQ(outcome_of(1), Outcome::queued);
  EXPECT_EQ(places_of(1), 1u);
}

TEST_F(AskAgainTest, ThePlaceInTheQueueIsTakenOverWithItsWait) {
  const Fence fence = grant("k", "a");
  acquire("k", chosen(1), {.wait = 5s, .id = 1});
  queue("k", "behind it", 2);
  EXPECT_EQ(acquire("k", chosen(3), {.wait = 20s, .id = 3}).outcome, Outcome::queued);
  EXPECT_EQ(outcome_of(1), Outcome::taken_over);
  end_session(1);
  pass(6s);  // the first wait would be over
  EXPECT_EQ(outcome_of(3), Outcome::queued);
  release("k", "a", fence);
  EXPECT_EQ(outcome_of(3), Outcome::ok);
  EXPECT_EQ(outcome_of(2), Outcome::queued);
  EXPECT_EQ(holds_of(3), 1u);
}

TEST_F(AskAgainTest, TheWaitOfTheLastRequestCounts) {
  grant("k", "a");
  acquire("k", chosen(1), {.wait = 50s, .id = 1});
  acquire("k", chosen(2), {.wait = 5s, .id = 2});
  pass(5s);
  EXPECT_EQ(outcome_of(2), Outcome::timeout);
  EXPECT_EQ(table_->waiters(), 0u);
}

TEST_F(AskAgainTest, ATryGivesThePlaceUp) {
  grant("k", "a");
  acquire("k", chosen(1), {.wait = 50s, .id = 1});
  EXPECT_EQ(acquire("k", chosen(2)).outcome, Outcome::timeout);
  EXPECT_EQ(outcome_of(1), Outcome::taken_over);
  EXPECT_EQ(table_->waiters(), 0u);
}

TEST_F(AskAgainTest, AnEarlierSessionDoesNotGetThePlace) {
  grant("k", "a");
  acquire("k", chosen(2), {.wait = 50s, .id = 1});
  EXPECT_EQ(acquire("k", chosen(1), {.wait = 5s, .id = 2}).outcome, Outcome::taken_over);
  EXPECT_EQ(enqueue("k", chosen(1)).outcome, Outcome::taken_over);
  EXPECT_EQ(outcome_of(1), Outcome::queued);
  pass(10s);
  EXPECT_EQ(outcome_of(1), Outcome::queued);
}

TEST_F(AskAgainTest, WithoutAListenerThePlaceIsLeftAsItIs) {
  grant("k", "a");
  acquire("k", chosen(1), {.wait = 50s, .id = 1});
  const AcquireRequest request{.key = "k", .holder = chosen(2), .ttl = kTtl, .wait = 5s};
  EXPECT_EQ(table_->acquire(now_, request, nullptr, 0).outcome, Outcome::held);
  EXPECT_EQ(places_of(1), 1u);
}

TEST_F(AskAgainTest, AParkedPlaceIsTakenOverByBothWaysOfAsking) {
  const Fence fence = grant("k", "a");
  enqueue("k", chosen(1));
  EXPECT_EQ(enqueue("k", chosen(1)).outcome, Outcome::queued);
  EXPECT_EQ(enqueue("k", chosen(2)).outcome, Outcome::queued);
  EXPECT_EQ(await_turn("k", 1, {.wait = 5s}).outcome, Outcome::not_enqueued);
  EXPECT_EQ(await_turn("k", 2, {.wait = 5s, .id = 1}).outcome, Outcome::queued);
  EXPECT_EQ(acquire("k", chosen(3), {.wait = 9s, .id = 2}).outcome, Outcome::queued);
  EXPECT_EQ(outcome_of(1), Outcome::taken_over);
  EXPECT_EQ(enqueue("k", chosen(4)).outcome, Outcome::queued);
  EXPECT_EQ(outcome_of(2), Outcome::taken_over);
  pass(10s);  // nobody waits any more: the place stays
  release("k", "a", fence);
  EXPECT_EQ(await_turn("k", 4, {.wait = 5s}).outcome, Outcome::ok);
}

TEST_F(AskAgainTest, ATwoPhaseGrantIsAwaitedByWhoAskedLast) {
  const Fence fence = enqueue("k", chosen(1)).grant.fence;
  EXPECT_EQ(enqueue("k", chosen(2)).grant.fence, fence);
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::not_enqueued);
  EXPECT_EQ(await_turn("k", 2).grant.fence, fence);
  EXPECT_EQ(enqueue("k", chosen(2)).grant.fence, fence);  // and of one that was awaited
  EXPECT_EQ(acquire("k", chosen(3)).grant.fence, fence);
  EXPECT_EQ(await_turn("k", 2).outcome, Outcome::not_enqueued);
  EXPECT_EQ(enqueue("k", chosen(1)).grant.fence, fence);
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::not_enqueued) << "it was told, and has nothing";
}

TEST_F(AskAgainTest, AGrantThatNobodyAwaitedIsToldOnceItIsTakenOver) {
  const Fence fence = grant("k", "a");
  enqueue("k", chosen(1));
  release("k", "a", fence);
  EXPECT_FALSE(table_->holds_anything(1));
  EXPECT_EQ(acquire("k", chosen(2)).outcome, Outcome::ok);
  EXPECT_TRUE(table_->holds_anything(2));
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::not_enqueued);
}

TEST_F(AskAgainTest, ASessionThatAwaitsByAnotherSecretIsAlreadyEnqueued) {
  grant("k", "a");
  enqueue("k", chosen(1, 1));
  enqueue("k", chosen(2, 2));
  EXPECT_EQ(enqueue("k", chosen(2, 1)).outcome, Outcome::already_enqueued);
  EXPECT_EQ(places_of(1), 1u);
}

// Its client has lost the connection, and the wait was granted meanwhile.
TEST_F(AskAgainTest, AGrantThatWasAskedForAgainIsNotWithdrawn) {
  const Fence first = grant("k", "a");
  acquire("k", chosen(1), {.wait = 50s, .id = 1});
  release("k", "a", first);
  const Fence fence = fence_of(1);
  EXPECT_EQ(acquire("k", chosen(2)).grant.fence, fence);
  EXPECT_FALSE(withdraw("k", chosen(1), fence));
}

TEST_F(AskAgainTest, AHoldThatItsSessionLeftIsTakenOver) {
  const Fence fence = grant("k", chosen(1));
  end_session(1, /*keep_holds=*/true);
  EXPECT_EQ(acquire("k", chosen(2)).grant.fence, fence);
  EXPECT_EQ(holds_of(2), 1u);
  end_session(2);
  EXPECT_EQ(acquire("k", "a").outcome, Outcome::ok);
}

// Nothing of what a session had falls to itself while it ends, in whatever order it came to it.
TEST_F(AskAgainTest, ASessionThatEndsPassesNothingOnToItself) {
  const Fence fence = grant("k", "a");
  acquire("k", chosen(1, 1), {.wait = 50s, .id = 1});
  enqueue("k", chosen(2, 2));
  acquire("k", chosen(2, 1), {.wait = 50s, .id = 2});  // before the other, and joined after it
  end_session(2);
  EXPECT_EQ(outcome_of(2), Outcome::cancelled);
  release("k", "a", fence);
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::ok);
}

TEST_F(AskAgainTest, WhatAJournalToldOfIsFound) {
  for (const Kind kind : {Kind::lock, Kind::semaphore}) {
    const std::uint32_t limit = kind == Kind::lock ? 1 : 2;
    ASSERT_TRUE(table_->apply({.type = Event::Type::granted,
                               .kind = kind,
                               .limit = limit,
                               .key = "k",
                               .holder = Holder::of_secret(kSecret),
                               .fence = 9,
                               .ttl = 30s,
                               .expires_at = now_ + 30s}));
    const auto again = acquire("k", chosen(5), {.kind = kind, .limit = limit});
    EXPECT_EQ(again.outcome, Outcome::ok);
    EXPECT_EQ(again.grant.fence, 9u);
  }
  EXPECT_EQ(holds_of(5), 2u);
}

TEST_F(AskAgainTest, WhatIsTakenOverIsCountedForWhoHasIt) {
  HoldBudget holds({.holds_per_client_max = 1});
  KeyBudget keys(10);
  LockTable table({}, keys, &holds);
  const auto ask = [&](SessionId session, std::uint64_t secret, std::string_view key) {
    return table.acquire(now_, {.key = key, .holder = chosen(session, secret), .ttl = kTtl},
                         nullptr, 0);
  };
  EXPECT_EQ(ask(1, 1, "a").outcome, Outcome::ok);
  EXPECT_EQ(ask(2, 2, "b").outcome, Outcome::ok);
  EXPECT_EQ(ask(2, 1, "a").outcome, Outcome::ok);  // whatever its cap
  EXPECT_EQ(ask(2, 3, "c").outcome, Outcome::max_client_holds);
  EXPECT_EQ(ask(1, 3, "c").outcome, Outcome::ok);  // it has nothing any more
  EXPECT_EQ(table.check(), "");
}

}  // namespace
}  // namespace lockd
