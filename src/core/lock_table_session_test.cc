// The rules of sessions: two-phase acquisition, and what a session leaves behind.
#include <string>

#include "core/lock_table.h"
#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

TEST_F(LockTableTest, EnqueueOfAFreeKeyIsAGrant) {
  const auto reply = enqueue("k", secret(1, 11), {.ttl = 5s});
  EXPECT_EQ(reply.outcome, Outcome::ok);
  EXPECT_EQ(reply.grant.expires_at, now_ + 5s);
  EXPECT_EQ(enqueue("k", secret(1, 12)).outcome, Outcome::already_enqueued);
  pass(3s);
  const auto awaited = await_turn("k", 1);
  EXPECT_EQ(awaited.outcome, Outcome::ok);
  EXPECT_EQ(awaited.grant.fence, reply.grant.fence);
  EXPECT_EQ(awaited.grant.secret, 11u);            // the enqueue's own: together they are its token
  EXPECT_EQ(awaited.grant.expires_at, now_ + 5s);  // a fresh lease
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::not_enqueued);
  EXPECT_EQ(release("k", secret(1, 11), reply.grant.fence), Outcome::ok);
}

TEST_F(LockTableTest, ASessionsIdIsBelow2To56) {
  EXPECT_EQ(acquire("k", secret(kSessionIdMax + 1, 1)).outcome, Outcome::invalid_holder);
  EXPECT_EQ(enqueue("k", secret(kSessionIdMax + 1, 1)).outcome, Outcome::invalid_holder);
  const Fence fence = grant("k", secret(kSessionIdMax, 1));
  EXPECT_EQ(acquire("k", secret(kSessionIdMax + 1, 2), {.wait = 10s, .id = 1}).outcome,
            Outcome::invalid_holder);
  queue("k", secret(kSessionIdMax, 2), 2);
  release("k", secret(kSessionIdMax, 1), fence);
  EXPECT_EQ(outcome_of(2), Outcome::ok);
  EXPECT_TRUE(table_->knows_session(kSessionIdMax));
}

TEST_F(LockTableTest, APlaceIsAwaitedLater) {
  const Fence fence = grant("k", "a");
  EXPECT_EQ(enqueue("k", secret(1, 11)).outcome, Outcome::queued);
  EXPECT_EQ(enqueue("k", secret(1, 12)).outcome, Outcome::already_enqueued);
  EXPECT_EQ(await_turn("k", 2).outcome, Outcome::not_enqueued);  // not its own
  EXPECT_EQ(await_turn("k", 1, {.wait = 10s, .id = 1}).outcome, Outcome::queued);
  EXPECT_EQ(await_turn("k", 1, {.wait = 10s, .id = 2}).outcome, Outcome::not_enqueued);
  release("k", "a", fence);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::not_enqueued);
  EXPECT_EQ(enqueue("k", secret(1, 12)).outcome, Outcome::queued);
}

TEST_F(LockTableTest, AnAwaitedPlaceIsGivenUpWhenItsWaitEnds) {
  grant("k", "a");
  enqueue("k", secret(1, 11));
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::timeout);
  EXPECT_EQ(table_->waiters(), 0u);
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::not_enqueued);
  enqueue("k", secret(1, 12));
  await_turn("k", 1, {.wait = 10ns, .id = 1});
  pass(10ns);
  EXPECT_EQ(outcome_of(1), Outcome::timeout);
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::not_enqueued);
}

// Granted between enqueue and wait: held from that moment, with its lease running.
TEST_F(LockTableTest, ASlotGrantedBeforeTheWaitIsHeldFromThen) {
  const Fence fence = grant("k", "a");
  enqueue("k", secret(1, 11), {.ttl = 10s});
  release("k", "a", fence);
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::held);
  pass(6s);
  const auto reply = await_turn("k", 1);
  EXPECT_EQ(reply.outcome, Outcome::ok);
  EXPECT_EQ(reply.grant.expires_at, now_ + 10s);
}

TEST_F(LockTableTest, AGrantThatLapsedBeforeTheWaitIsToldOnceAndBlocksNothing) {
  const Fence fence = grant("k", "a");
  enqueue("k", secret(1, 11), {.ttl = 10s});
  release("k", "a", fence);
  pass(10s);
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::expired);
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::not_enqueued);

  enqueue("k", secret(1, 12), {.ttl = 10s});  // granted at once, then lapses
  pass(10s);
  EXPECT_EQ(enqueue("k", secret(1, 13), {.ttl = 10s}).outcome, Outcome::ok);
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::ok);
}

TEST_F(LockTableTest, ALapsedGrantBlocksNoPlaceInLineEither) {
  enqueue("k", secret(1, 11), {.ttl = 10s});
  pass(10s);
  grant("k", "a");
  EXPECT_EQ(enqueue("k", secret(1, 12)).outcome, Outcome::queued);
  EXPECT_EQ(await_turn("k", 1, {.wait = 1s, .id = 1}).outcome, Outcome::queued);
}

TEST_F(LockTableTest, ReleaseEndsTheEnqueuedState) {
  const auto reply = enqueue("k", secret(1, 11));
  EXPECT_EQ(release("k", secret(1, 11), reply.grant.fence), Outcome::ok);
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::not_enqueued);
  EXPECT_EQ(enqueue("k", secret(1, 12)).outcome, Outcome::ok);
}

TEST_F(LockTableTest, ALapsedGrantIsForgottenWithItsKey) {
  enqueue("k", secret(1, 11), {.ttl = 10s});
  enqueue("k", secret(2, 21), {.ttl = 10s});
  pass(10s);  // the first lapses, the second is granted
  pass(10s);
  EXPECT_EQ(table_->forget_idle(now_, 10), 1u);
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::not_enqueued);
  EXPECT_EQ(await_turn("k", 2).outcome, Outcome::not_enqueued);
  EXPECT_EQ(table_->check(), "");
}

TEST_F(LockTableTest, LapsedGrantsAreRememberedUpToALimit) {
  reset({}, 10'000);
  const std::size_t count = EnqueuedIndex::kLapsedMax + 10;
  for (std::size_t i = 0; i < count; ++i) {
    table_->enqueue(now_, {"k" + std::to_string(i), secret(1, i + 1), 10s});
  }
  pass(10s);
  std::size_t remembered = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto key = "k" + std::to_string(i);
    remembered +=
        table_->await_turn(now_, 1, Kind::lock, key, 0s, this, 0).outcome == Outcome::expired;
  }
  EXPECT_EQ(remembered, EnqueuedIndex::kLapsedMax);
}

TEST_F(LockTableTest, TheSameKeyMayBeEnqueuedInBothNamespaces) {
  grant("k", "a");
  EXPECT_EQ(enqueue("k", secret(1, 11)).outcome, Outcome::queued);
  EXPECT_EQ(enqueue("k", secret(1, 12), {.kind = Kind::semaphore, .limit = 2}).outcome,
            Outcome::ok);
  EXPECT_EQ(await_turn("k", 1, {.kind = Kind::semaphore}).outcome, Outcome::ok);
  EXPECT_EQ(await_turn("k", 1, {.wait = 1s}).outcome, Outcome::queued);
}

TEST_F(LockTableTest, ASessionIsKnownWhileItHoldsOrWaits) {
  EXPECT_FALSE(table_->knows_session(1));
  const Fence fence = grant("k", secret(1, 11));
  EXPECT_TRUE(table_->knows_session(1));
  release("k", secret(1, 11), fence);
  EXPECT_FALSE(table_->knows_session(1));
  grant("k", "a");
  enqueue("k", secret(1, 12));
  EXPECT_TRUE(table_->knows_session(1));
  await_turn("k", 1);  // with no wait: gives the place up
  EXPECT_FALSE(table_->knows_session(1));
}

// The end of a session.

TEST_F(LockTableTest, AnEndedSessionLeavesEveryLineAndPassesOnItsHolds) {
  grant("held", secret(1, 1));
  queue("held", "next", 10);
  grant("other", "a");
  queue("other", secret(1, 2), 11);
  queue("other", "after", 12);
  enqueue("third", secret(1, 3));
  end_session(1);
  EXPECT_EQ(outcome_of(10), Outcome::ok);
  EXPECT_EQ(outcome_of(11), Outcome::cancelled);
  EXPECT_EQ(outcome_of(12), Outcome::queued);
  EXPECT_EQ(acquire("third", "z").outcome, Outcome::ok);
}

TEST_F(LockTableTest, AnEndedSessionIsNotGrantedWhatItGivesUp) {
  grant("k", secret(1, 1));
  queue("k", secret(1, 2), 10);
  enqueue("k", secret(1, 3));
  queue("k", "b", 11);
  end_session(1);
  EXPECT_EQ(outcome_of(10), Outcome::cancelled);
  EXPECT_EQ(outcome_of(11), Outcome::ok);
}

TEST_F(LockTableTest, KeptHoldsLiveOnByTheirLeasesButPlacesGo) {
  const Fence fence = grant("k", secret(1, 1), {.ttl = 10s});
  queue("k", "b", 10, 60s);
  grant("other", "a");
  queue("other", secret(1, 2), 11);
  end_session(1, /*keep_holds=*/true);
  EXPECT_EQ(outcome_of(11), Outcome::cancelled);
  EXPECT_EQ(outcome_of(10), Outcome::queued);
  EXPECT_EQ(renew("k", secret(0, 1), fence).outcome, Outcome::ok);  // by token, from anywhere
  pass(10s);
  EXPECT_EQ(outcome_of(10), Outcome::ok);
}

TEST_F(LockTableTest, ASessionThatMayComeBackKeepsItsHoldsAndNoPlace) {
  grant("k", secret(1, 1), {.ttl = 10s});
  grant("other", "a");
  queue("other", secret(1, 2), 11);
  grant("third", "a");
  enqueue("third", secret(1, 3));
  int budget = 100;
  EXPECT_TRUE(table_->end_places(now_, 1, &budget));
  pass(0s);
  EXPECT_EQ(outcome_of(11), Outcome::cancelled);
  EXPECT_EQ(table_->owned(1).holds, 1U);
  EXPECT_EQ(table_->owned(1).places, 0U);
  EXPECT_FALSE(table_->forget_session(1));
  end_session(1);  // it was back, and has gone
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::ok);
}

TEST_F(LockTableTest, ASessionThatDoesNotComeBackIsForgottenWithItsLeases) {
  grant("k", secret(1, 1), {.ttl = 10s});
  int budget = 100;
  EXPECT_TRUE(table_->end_places(now_, 1, &budget));
  pass(10s);
  EXPECT_TRUE(table_->forget_session(1));
  EXPECT_FALSE(table_->knows_session(1));
}

TEST_F(LockTableTest, AGrantThatItsSessionWasNeverToldOfGoesWithItAlways) {
  const Fence fence = grant("k", "a");
  enqueue("k", secret(1, 1));
  release("k", "a", fence);       // granted to the place; nobody has been told
  enqueue("told", secret(1, 2));  // granted at once, and told so
  end_session(1, /*keep_holds=*/true);
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::ok);
  EXPECT_EQ(acquire("told", "b").outcome, Outcome::held);
}

TEST_F(LockTableTest, AnAwaitedGrantIsTold) {
  const Fence fence = grant("k", "a");
  enqueue("k", secret(1, 1));
  release("k", "a", fence);
  await_turn("k", 1);
  end_session(1, /*keep_holds=*/true);
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::held);
}

TEST_F(LockTableTest, NamedHoldsBelongToNoSession) {
  grant("k", "a");
  end_session(1);
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::held);
}

TEST_F(LockTableTest, ALargeSessionEndsInSlices) {
  reset({}, 10'000);
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    table_->acquire(now_, {"k" + std::to_string(i), secret(1, i), kTtl}, nullptr, 0);
  }
  table_->effects().clear();
  int slices = 0;
  for (int budget = 64; !table_->end_session(now_, 1, false, &budget); budget = 64) {
    EXPECT_LE(table_->effects().events.size(), 64u);
    table_->effects().clear();
    ++slices;
    ASSERT_EQ(table_->check(), "");
  }
  EXPECT_GE(slices, 15);
  EXPECT_EQ(acquire("k999", "b").outcome, Outcome::ok);
}

// A grant that nobody was told of is taken back.

TEST_F(LockTableTest, AGrantIsWithdrawnAndPassedOn) {
  const Fence fence = grant("k", "a");
  queue("k", "b", 1);
  EXPECT_FALSE(withdraw("k", "b", fence));
  EXPECT_FALSE(withdraw("k", "a", fence + 1));
  EXPECT_FALSE(withdraw("k", "a", fence, Kind::semaphore));
  EXPECT_FALSE(withdraw("another", "a", fence));
  EXPECT_TRUE(withdraw("k", "a", fence));
  EXPECT_EQ(outcome_of(1), Outcome::ok);
  EXPECT_FALSE(withdraw("k", "a", fence));
  ASSERT_EQ(events_.size(), 3u);
  EXPECT_EQ(events_[1].type, Event::Type::ended);
  EXPECT_EQ(events_[1].cause, EndCause::disconnected);
  EXPECT_TRUE(withdraw("k", "b", fence_of(1)));  // as one that had waited
}

// In every case somebody may have been told of it, at the very instant of the grant too.
TEST_F(LockTableTest, AGrantWhoseLeaseWasMovedIsNotWithdrawn) {
  const Fence renewed = grant("renewed", "a");
  EXPECT_EQ(renew("renewed", "a", renewed).outcome, Outcome::ok);
  EXPECT_FALSE(withdraw("renewed", "a", renewed));

  const Fence again = grant("again", "a");
  EXPECT_EQ(grant("again", "a"), again);
  EXPECT_FALSE(withdraw("again", "a", again));

  const Fence awaited = enqueue("awaited", secret(1, 11)).grant.fence;
  EXPECT_EQ(await_turn("awaited", 1).outcome, Outcome::ok);
  EXPECT_FALSE(withdraw("awaited", secret(1, 11), awaited));

  const Ask ask{.kind = Kind::semaphore, .limit = 2, .wait = 10s};
  const Fence x = grant("line", "x", ask);
  const Fence y = grant("line", "y", ask);
  for (std::uint64_t id : {1u, 2u}) {
    Ask waiting = ask;
    waiting.id = id;
    acquire("line", "a", waiting);
  }
  release("line", "x", x, Kind::semaphore);
  release("line", "y", y, Kind::semaphore);
  EXPECT_EQ(fence_of(1), fence_of(2));  // of the two calls one may have heard
  EXPECT_FALSE(withdraw("line", "a", fence_of(1), Kind::semaphore));
}

TEST_F(LockTableTest, AKeysNextGrantCanBeWithdrawnWhateverBecameOfTheLast) {
  const Fence fence = grant("k", "a");
  renew("k", "a", fence);
  release("k", "a", fence);
  EXPECT_TRUE(withdraw("k", "a", grant("k", "a")));
}

TEST_F(LockTableTest, AGrantThatIsOverIsNotWithdrawn) {
  const Fence fence = grant("k", "a", {.ttl = 5s});
  now_ = now_ + 5s;
  EXPECT_FALSE(withdraw("k", "a", fence));
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[1].cause, EndCause::expired);
}

}  // namespace
}  // namespace lockd
