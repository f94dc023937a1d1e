// Tests of sessions: two-phase acquisition and the end of a session.
#include <string>

#include "core/lock_table.h"
#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

TEST_F(LockTableTest, EnqueueForAFreeKeyIsGranted) {
  const auto reply = enqueue("k", secret(1, 11), {.ttl = 5s});
  EXPECT_EQ(reply.outcome, Outcome::ok);
  EXPECT_EQ(reply.grant.expires_at, now_ + 5s);
  EXPECT_EQ(enqueue("k", secret(1, 12)).outcome, Outcome::already_enqueued);
  pass(3s);
  const auto awaited = await_turn("k", 1);
  EXPECT_EQ(awaited.outcome, Outcome::ok);
  EXPECT_EQ(awaited.grant.fence, reply.grant.fence);
  EXPECT_EQ(awaited.grant.secret, 11u);            // that of the enqueue
  EXPECT_EQ(awaited.grant.expires_at, now_ + 5s);  // a fresh lease
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::not_enqueued);
  EXPECT_EQ(release("k", secret(1, 11), reply.grant.fence), Outcome::ok);
}

TEST_F(LockTableTest, SessionIdIsBelow2To56) {
  EXPECT_EQ(acquire("k", secret(kSessionIdMax + 1, 1)).outcome, Outcome::invalid_holder);
  EXPECT_EQ(enqueue("k", secret(kSessionIdMax + 1, 1)).outcome, Outcome::invalid_holder);
  const Fence fence = grant("k", secret(kSessionIdMax, 1));
  EXPECT_EQ(acquire("k", secret(kSessionIdMax + 1, 2), {.wait = 10s, .id = 1}).outcome,
            Outcome::invalid_holder);
  queue("k", secret(kSessionIdMax, 2), 2);
  release("k", secret(kSessionIdMax, 1), fence);
  EXPECT_EQ(outcome_of(2), Outcome::ok);
  EXPECT_TRUE(table_->sessions().has(kSessionIdMax));
}

TEST_F(LockTableTest, LapsedGrantsAreRememberedUpToALimit) {
  reset({}, 10'000);
  const std::size_t count = SessionIndex::kLapsedMax + 10;
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
  EXPECT_EQ(remembered, SessionIndex::kLapsedMax);
}

TEST_F(LockTableTest, EndedSessionLeavesAllQueuesAndReleasesItsHolds) {
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

TEST_F(LockTableTest, EndPlacesKeepsTheHoldsOfASession) {
  grant("k", secret(1, 1), {.ttl = 10s});
  grant("other", "a");
  queue("other", secret(1, 2), 11);
  grant("third", "a");
  enqueue("third", secret(1, 3));
  int budget = 100;
  EXPECT_TRUE(table_->end_places(now_, 1, &budget));
  pass(0s);
  EXPECT_EQ(outcome_of(11), Outcome::cancelled);
  EXPECT_EQ(table_->sessions().owned(1).holds, 1U);
  EXPECT_EQ(table_->sessions().owned(1).places, 0U);
  EXPECT_FALSE(table_->forget_session(1));
  end_session(1);  // the session reconnected and then ended
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::ok);
}

TEST_F(LockTableTest, LostSessionIsForgottenAfterItsLeasesExpire) {
  grant("k", secret(1, 1), {.ttl = 10s});
  int budget = 100;
  EXPECT_TRUE(table_->end_places(now_, 1, &budget));
  pass(10s);
  EXPECT_TRUE(table_->forget_session(1));
  EXPECT_FALSE(table_->sessions().has(1));
}

TEST_F(LockTableTest, UnacknowledgedGrantEndsWithItsSessionEvenIfItKeepsHolds) {
  const Fence fence = grant("k", "a");
  enqueue("k", secret(1, 1));
  release("k", "a", fence);               // granted to the place, and not acknowledged
  enqueue("acknowledged", secret(1, 2));  // granted in the reply
  end_session(1, /*keep_holds=*/true);
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::ok);
  EXPECT_EQ(acquire("acknowledged", "b").outcome, Outcome::held);
}

}  // namespace
}  // namespace lockd
