// Tests of repeated requests by one name or client-chosen secret, and of the session that then owns
// the hold or the place.
#include "core/lock_table.h"
#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

class RepeatedRequestTest : public LockTableTest {
 protected:
  static constexpr std::uint64_t kSecret = 77;

  static Holder chosen(SessionId session, std::uint64_t secret = kSecret) {
    return Holder::of_secret(secret, session).chosen();
  }
  std::uint64_t holds_of(SessionId session) const {
    return table_->sessions().owned(session).holds;
  }
  std::uint64_t places_of(SessionId session) const {
    return table_->sessions().owned(session).places;
  }
};

TEST_F(RepeatedRequestTest, ShorterTtlShortensNeitherDeadlineNorTtlOfTheHold) {
  const Fence fence = grant("k", "cart-1", {.ttl = 60s});
  const auto again = acquire("k", "cart-1", {.ttl = 1ms});
  EXPECT_EQ(again.outcome, Outcome::ok);
  EXPECT_EQ(again.grant.fence, fence);
  EXPECT_EQ(again.grant.ttl, 60s);
  EXPECT_EQ(again.grant.expires_at, now_ + 60s);
  pass(59s);
  EXPECT_EQ(acquire("k", "cart-2").outcome, Outcome::held);
}

TEST_F(RepeatedRequestTest, ReplyTtlIsAtMostTheRemainingLease) {
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

TEST_F(RepeatedRequestTest, LaterSessionOwnsTheHoldAndEndOfEarlierSessionReleasesNothing) {
  const Fence fence = grant("k", chosen(1));
  EXPECT_EQ(acquire("k", chosen(2)).grant.fence, fence);
  EXPECT_EQ(holds_of(1), 0u);
  EXPECT_EQ(holds_of(2), 1u);
  end_session(1);
  EXPECT_EQ(acquire("k", "other").outcome, Outcome::held);
  end_session(2);
  EXPECT_EQ(acquire("k", "other").outcome, Outcome::ok);
}

TEST_F(RepeatedRequestTest, LaterSessionTakesOverThePlaceAndItsWait) {
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

// A session that lost its connection leaves the queues and keeps its holds, also one that was
// granted after `enqueue` and not awaited. When it returns and repeats the request, it has the
// grant.
TEST_F(RepeatedRequestTest, ReturningSessionAcknowledgesItsHold) {
  const Fence fence = grant("k", "a");
  ASSERT_EQ(enqueue("k", chosen(1)).outcome, Outcome::queued);
  release("k", "a", fence);
  int budget = 100;
  ASSERT_TRUE(table_->end_places(now_, 1, &budget));
  collect();
  EXPECT_EQ(holds_of(1), 1u);
  EXPECT_FALSE(table_->sessions().has_acknowledged_hold(1));
  EXPECT_EQ(acquire("k", chosen(1)).outcome, Outcome::ok);
  EXPECT_TRUE(table_->sessions().has_acknowledged_hold(1));
  end_session(1, /*keep_holds=*/true);
  EXPECT_EQ(acquire("k", "other").outcome, Outcome::held) << "the session had received the grant";
}

TEST_F(RepeatedRequestTest, RequestWithoutListenerDoesNotTakeOverThePlace) {
  grant("k", "a");
  acquire("k", chosen(1), {.wait = 50s, .id = 1});
  const KeyRequest request{.key = "k", .holder = chosen(2), .ttl = kTtl, .wait = 5s};
  EXPECT_EQ(table_->acquire(now_, request, nullptr, 0).outcome, Outcome::held);
  EXPECT_EQ(places_of(1), 1u);
}

TEST_F(RepeatedRequestTest, RecoveredHoldIsFoundByItsSecret) {
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

}  // namespace
}  // namespace lockd
