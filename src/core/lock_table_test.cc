// The rules of holding: grants, leases, fences, renewals, releases, and what is refused.
#include "core/lock_table.h"

#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

TEST_F(LockTableTest, AFreeLockIsGrantedAtOnceWithItsLeaseFromNow) {
  const auto reply = acquire("k", "a", {.ttl = 5s});
  EXPECT_EQ(reply.outcome, Outcome::ok);
  EXPECT_EQ(reply.grant.fence, 1u);
  EXPECT_EQ(reply.grant.ttl, 5s);
  EXPECT_EQ(reply.grant.expires_at, now_ + 5s);
}

TEST_F(LockTableTest, AHeldLockIsRefusedAndSaysWhoHasIt) {
  const Fence fence = grant("k", "a", {.ttl = 5s});
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::held);
  EXPECT_EQ(conflict_.holder, "a");
  EXPECT_EQ(conflict_.fence, fence);
  EXPECT_EQ(conflict_.expires_at, now_ + 5s);
  EXPECT_EQ(conflict_.holders, 1u);
  EXPECT_EQ(conflict_.limit, 1u);
}

TEST_F(LockTableTest, ASessionsHoldShowsAsItsConnectionAndNeverItsSecret) {
  grant("k", secret(7, 0xdeadbeef));
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::held);
  EXPECT_EQ(conflict_.holder, "tcp:7");
}

// An exact boundary: one nanosecond before the deadline it is held, at the deadline it is not.
TEST_F(LockTableTest, ALeaseEndsAtItsDeadlineAndNotANanosecondEarlier) {
  const Fence fence = grant("k", "a", {.ttl = 10ns});
  pass(9ns);
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::held);
  EXPECT_EQ(renew("k", "a", fence, 10ns).outcome, Outcome::ok);
  pass(9ns);
  EXPECT_EQ(renew("k", "a", fence, 10ns).outcome, Outcome::ok);
  pass(10ns);
  EXPECT_EQ(renew("k", "a", fence, 10ns).outcome, Outcome::expired);
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::ok);
}

TEST_F(LockTableTest, AnOperationAtTheDeadlineFindsTheLeaseOverThoughNobodySwept) {
  const Fence fence = grant("k", "a", {.ttl = 10ns});
  now_ = now_ + 10ns;  // no advance(): the acquire must see to it
  EXPECT_EQ(acquire("k", "b").outcome, Outcome::ok);
  EXPECT_EQ(release("k", "a", fence), Outcome::stale);
}

TEST_F(LockTableTest, TimeNeverGoesBack) {
  grant("k", "a", {.ttl = 10s});
  pass(5s);
  now_ = now_ - 3s;
  const auto reply = acquire("other", "a", {.ttl = 10s});
  EXPECT_EQ(reply.grant.expires_at, now_ + 3s + 10s);
}

TEST_F(LockTableTest, RenewalMovesTheLeaseBothWays) {
  const Fence fence = grant("k", "a", {.ttl = 10s});
  EXPECT_EQ(renew("k", "a", fence, 60s).grant.expires_at, now_ + 60s);
  EXPECT_EQ(renew("k", "a", fence, 2s).grant.expires_at, now_ + 2s);
  pass(2s);
  EXPECT_EQ(release("k", "a", fence), Outcome::expired);
}

TEST_F(LockTableTest, RenewalWithoutALeaseUsesTheGrantsOwnWhateverRenewalsNamedSince) {
  const Fence fence = grant("k", "a", {.ttl = 10s});
  renew("k", "a", fence, 60s);
  EXPECT_EQ(renew("k", "a", fence).grant.expires_at, now_ + 10s);
}

TEST_F(LockTableTest, ANameThatHoldsGetsItsGrantBackWithItsNewLease) {
  const Fence fence = grant("k", "a", {.ttl = 10s});
  pass(1s);
  const auto again = acquire("k", "a", {.ttl = 20s});
  EXPECT_EQ(again.outcome, Outcome::ok);
  EXPECT_EQ(again.grant.fence, fence);
  EXPECT_EQ(again.grant.expires_at, now_ + 20s);
  EXPECT_EQ(renew("k", "a", fence).grant.expires_at, now_ + 20s);  // and it is its own from now on
}

TEST_F(LockTableTest, ANameIsBlockedByNobodysLineForItsOwnHold) {
  grant("k", "a");
  queue("k", "b", 1);
  EXPECT_EQ(acquire("k", "a").outcome, Outcome::ok);
}

TEST_F(LockTableTest, ASecretQueuesBehindItself) {
  grant("k", secret(1, 11));
  EXPECT_EQ(acquire("k", secret(1, 12)).outcome, Outcome::held);
  EXPECT_EQ(acquire("k", secret(1, 12), {.wait = 1s, .id = 5}).outcome, Outcome::queued);
}

TEST_F(LockTableTest, RefusalsOfRenewAndReleaseSayWhyAndChangeNothing) {
  const Fence old = grant("k", "a");
  EXPECT_EQ(release("k", "a", old), Outcome::ok);
  const Fence fence = grant("k", "b", {.ttl = 5s});
  const struct {
    const char* what;
    const char* key;
    Holder holder;
    Fence fence;
    Outcome outcome;
  } cases[] = {
      {"unknown key", "other", "b", fence, Outcome::expired},
      {"an older fence", "k", "a", old, Outcome::stale},
      {"an older fence, and the name that holds", "k", "b", old, Outcome::stale},
      {"somebody else", "k", "a", fence, Outcome::not_holder},
      {"a fence from the future", "k", "b", fence + 1, Outcome::not_holder},
      {"a secret for a name", "k", secret(0, 0), fence, Outcome::not_holder},
      {"no key", "", "b", fence, Outcome::invalid_key},
  };
  const std::size_t events = events_.size();
  for (const auto& c : cases) {
    EXPECT_EQ(release(c.key, c.holder, c.fence), c.outcome) << c.what;
    EXPECT_EQ(renew(c.key, c.holder, c.fence).outcome, c.outcome) << c.what;
  }
  EXPECT_EQ(renew("k", "b", fence, 0s).outcome, Outcome::invalid_ttl);
  EXPECT_EQ(renew("k", "b", fence, -1s).outcome, Outcome::invalid_ttl);
  EXPECT_EQ(events_.size(), events);
  EXPECT_EQ(table_->keys(), 1u);
  pass(5s - 1ns);
  EXPECT_EQ(release("k", "b", fence), Outcome::ok);
}

TEST_F(LockTableTest, SecretsAreComparedWhole) {
  const Fence fence = grant("k", secret(1, 0x1122334455667788));
  EXPECT_EQ(release("k", secret(1, 0x1122334455667789), fence), Outcome::not_holder);
  EXPECT_EQ(release("k", secret(1, 0x0122334455667788), fence), Outcome::not_holder);
  EXPECT_EQ(release("k", "tcp:1", fence), Outcome::not_holder);
  // Authority is key and token, not the connection.
  EXPECT_EQ(release("k", secret(2, 0x1122334455667788), fence), Outcome::ok);
}

TEST_F(LockTableTest, FencesRiseThroughExpiryReleaseAndForgetting) {
  Fence last = 0;
  for (int i = 0; i < 5; ++i) {
    const Fence fence = grant("k", "a", {.ttl = 1s});
    EXPECT_GT(fence, last);
    last = fence;
    if (i % 2 == 0) release("k", "a", fence);
    pass(2s);
    EXPECT_EQ(table_->forget_idle(now_, 10), 1u);
    EXPECT_EQ(table_->keys(), 0u);
  }
}

TEST_F(LockTableTest, FenceTellsTheGrantInForceOrTheLargestThatCanHaveBeen) {
  EXPECT_EQ(table_->fence(now_, "k").fence, 0u);
  const Fence fence = grant("k", "a");
  grant("other", "a");
  EXPECT_TRUE(table_->fence(now_, "k").held);
  EXPECT_EQ(table_->fence(now_, "k").fence, fence);
  release("k", "a", fence);
  EXPECT_FALSE(table_->fence(now_, "k").held);
  EXPECT_EQ(table_->fence(now_, "k").fence, fence);
  EXPECT_EQ(table_->fence(now_, "never seen").fence, 2u);
  table_->forget_idle(now_, 10);
  EXPECT_GE(table_->fence(now_, "k").fence, fence);
}

TEST_F(LockTableTest, BadInputIsNamedAndChangesNothing) {
  const std::string longest(256, 'x');
  const std::string too_long(257, 'x');
  const struct {
    const char* what;
    std::string_view key;
    Holder holder;
    Ask ask;
    Outcome outcome;
  } cases[] = {
      {"empty key", "", "a", {}, Outcome::invalid_key},
      {"oversize key", too_long, "a", {}, Outcome::invalid_key},
      {"control character", "a\nb", "a", {}, Outcome::invalid_key},
      {"not UTF-8", "\xff", "a", {}, Outcome::invalid_key},
      {"empty holder", "k", "", {}, Outcome::invalid_holder},
      {"oversize holder", "k", Holder(too_long), {}, Outcome::invalid_holder},
      {"control in holder", "k", "a\x7f", {}, Outcome::invalid_holder},
      {"zero ttl", "k", "a", {.ttl = 0s}, Outcome::invalid_ttl},
      {"negative ttl", "k", "a", {.ttl = -1s}, Outcome::invalid_ttl},
      {"negative wait", "k", "a", {.wait = -1ns}, Outcome::invalid_wait},
      {"limit zero", "k", "a", {.kind = Kind::semaphore, .limit = 0}, Outcome::invalid_limit},
      {"limit 2^31",
       "k",
       "a",
       {.kind = Kind::semaphore, .limit = 1u << 31},
       Outcome::invalid_limit},
      {"a lock of two", "k", "a", {.limit = 2}, Outcome::invalid_limit},
  };
  for (const auto& c : cases)
    EXPECT_EQ(acquire(c.key, c.holder, c.ask).outcome, c.outcome) << c.what;
  EXPECT_EQ(enqueue("", secret(1, 1)).outcome, Outcome::invalid_key);
  EXPECT_EQ(enqueue("k", secret(1, 1), {.ttl = 0s}).outcome, Outcome::invalid_ttl);
  EXPECT_EQ(enqueue("k", "a name").outcome, Outcome::invalid_holder);
  EXPECT_EQ(enqueue("k", secret(0, 1)).outcome, Outcome::invalid_holder);
  EXPECT_EQ(await_turn("", 1).outcome, Outcome::invalid_key);
  EXPECT_EQ(await_turn("k", 1, {.wait = -1s}).outcome, Outcome::invalid_wait);
  EXPECT_EQ(table_->keys(), 0u);
  EXPECT_EQ(table_->last_fence(), 0u);
  EXPECT_TRUE(events_.empty());
  EXPECT_EQ(acquire(longest, Holder(longest)).outcome, Outcome::ok);
  EXPECT_EQ(acquire("most", "a", {.ttl = kDurationMax}).outcome, Outcome::ok);
  EXPECT_EQ(acquire("most", "b", {.wait = kDurationMax, .id = 1}).outcome, Outcome::queued);
}

TEST_F(LockTableTest, FencesStopBelowTwoToThe53) {
  reset({.last_fence = kFenceMax - 2});
  const Fence fence = grant("a", "x");
  queue("a", "y", 1);
  EXPECT_EQ(grant("b", "x"), kFenceMax);
  EXPECT_EQ(acquire("c", "x").outcome, Outcome::fences_exhausted);
  EXPECT_EQ(enqueue("c", secret(1, 1)).outcome, Outcome::fences_exhausted);
  EXPECT_EQ(table_->keys(), 2u);
  EXPECT_EQ(release("a", "x", fence), Outcome::ok);
  EXPECT_EQ(outcome_of(1), Outcome::fences_exhausted);  // nobody is left waiting for what cannot be
}

// Semaphores.

TEST_F(LockTableTest, ASemaphoreHasAsManyHoldersAsItsLimit) {
  const Fence a = grant("s", "a", {.kind = kSemaphore, .limit = 2});
  const Fence b = grant("s", "b", {.kind = kSemaphore, .limit = 2});
  EXPECT_LT(a, b);
  EXPECT_EQ(acquire("s", "c", {.kind = kSemaphore, .limit = 2}).outcome, Outcome::held);
  EXPECT_EQ(conflict_.holders, 2u);
  EXPECT_EQ(conflict_.limit, 2u);
  EXPECT_EQ(release("s", "a", a, kSemaphore), Outcome::ok);
  EXPECT_EQ(acquire("s", "c", {.kind = kSemaphore, .limit = 2}).outcome, Outcome::ok);
}

TEST_F(LockTableTest, TheFirstAcquirerFixesTheLimitWhileTheKeyIsInUse) {
  const Fence a = grant("s", "a", {.kind = kSemaphore, .limit = 2});
  EXPECT_EQ(acquire("s", "b", {.kind = kSemaphore, .limit = 3}).outcome, Outcome::limit_mismatch);
  EXPECT_EQ(conflict_.limit, 2u);
  EXPECT_EQ(acquire("s", "a", {.kind = kSemaphore, .limit = 3}).outcome, Outcome::limit_mismatch);
  EXPECT_EQ(enqueue("s", secret(1, 1), {.kind = kSemaphore, .limit = 1}).outcome,
            Outcome::limit_mismatch);
  release("s", "a", a, kSemaphore);
  EXPECT_EQ(acquire("s", "b", {.kind = kSemaphore, .limit = 3}).outcome, Outcome::ok);  // idle
}

TEST_F(LockTableTest, LocksAndSemaphoresAreSeparateNamespaces) {
  const Fence lock = grant("k", "a");
  const Fence permit = grant("k", "b", {.kind = kSemaphore, .limit = 1});
  EXPECT_EQ(release("k", "a", lock, kSemaphore), Outcome::stale);
  EXPECT_EQ(release("k", "b", permit, Kind::lock), Outcome::not_holder);
  EXPECT_EQ(release("k", "a", lock), Outcome::ok);
  EXPECT_EQ(release("k", "b", permit, kSemaphore), Outcome::ok);
}

TEST_F(LockTableTest, ANameHasOnePermitAtMost) {
  const Fence a = grant("s", "a", {.kind = kSemaphore, .limit = 3});
  grant("s", "b", {.kind = kSemaphore, .limit = 3});
  EXPECT_EQ(grant("s", "a", {.kind = kSemaphore, .limit = 3}), a);
  EXPECT_EQ(grant("s", "c", {.kind = kSemaphore, .limit = 3}), a + 2);
}

// Nobody waits behind their own hold.
TEST_F(LockTableTest, ANameInTwoPlacesOfAQueueHasOnePermitAndBothAreTold) {
  const Ask ask{.kind = kSemaphore, .limit = 2, .wait = 10s};
  const Fence x = grant("s", "x", ask);
  const Fence y = grant("s", "y", ask);
  for (std::uint64_t id : {1u, 2u, 3u}) {
    Ask waiting = ask;
    waiting.id = id;
    EXPECT_EQ(acquire("s", id == 3 ? "b" : "a", waiting).outcome, Outcome::queued);
  }
  release("s", "x", x, kSemaphore);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
  EXPECT_EQ(outcome_of(2), Outcome::ok);
  EXPECT_EQ(fence_of(2), fence_of(1));
  EXPECT_EQ(outcome_of(3), Outcome::queued);  // it has taken one permit
  release("s", "y", y, kSemaphore);
  EXPECT_EQ(outcome_of(3), Outcome::ok);
}

TEST_F(LockTableTest, SoHasANameThatWaitsTwiceForALock) {
  const Fence x = grant("k", "x");
  queue("k", "a", 1);
  queue("k", "b", 2);
  queue("k", "a", 3);
  release("k", "x", x);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
  EXPECT_EQ(outcome_of(3), Outcome::ok);
  EXPECT_EQ(fence_of(3), fence_of(1));
  EXPECT_EQ(settled_.at(3).grant.expires_at, settled_.at(1).grant.expires_at);
  EXPECT_EQ(outcome_of(2), Outcome::queued);
  EXPECT_FALSE(withdraw("k", "a", fence_of(1))) << "another caller was told of it too";
  EXPECT_EQ(release("k", "a", fence_of(1)), Outcome::ok);
  EXPECT_EQ(outcome_of(2), Outcome::ok);
}

TEST_F(LockTableTest, APlaceThatLeftIsNoNamesake) {
  const Fence x = grant("k", "x");
  const std::uint32_t first = queue("k", "a", 1);
  queue("k", "a", 2);
  queue("k", "a name that does not fit inside", 3);
  EXPECT_TRUE(cancel(first, 1));
  release("k", "x", x);
  EXPECT_EQ(outcome_of(1), Outcome::cancelled);
  EXPECT_EQ(outcome_of(2), Outcome::ok);
  EXPECT_TRUE(withdraw("k", "a", fence_of(2))) << "one caller's alone";
  EXPECT_EQ(outcome_of(3), Outcome::ok);
}

TEST_F(LockTableTest, RefusalsOfASemaphoreSayWhy) {
  const Ask ask{.kind = kSemaphore, .limit = 3};
  const Fence a = grant("s", "a", ask);
  const Fence b = grant("s", "b", ask);
  EXPECT_EQ(release("s", "a", b, kSemaphore), Outcome::not_holder);
  EXPECT_EQ(release("s", "a", b + 1, kSemaphore), Outcome::not_holder);
  EXPECT_EQ(release("s", "a", a, kSemaphore), Outcome::ok);
  EXPECT_EQ(release("s", "a", a, kSemaphore), Outcome::stale);
  EXPECT_EQ(release("s", "b", b, kSemaphore), Outcome::ok);
  EXPECT_EQ(release("s", "b", b, kSemaphore), Outcome::expired);
}

TEST_F(LockTableTest, TwoPermitsThatExpireTogetherMakeRoomForTwo) {
  grant("s", "a", {.kind = kSemaphore, .limit = 2, .ttl = 5s});
  grant("s", "b", {.kind = kSemaphore, .limit = 2, .ttl = 5s});
  for (std::uint64_t id : {1u, 2u, 3u}) {
    acquire("s",
            Holder(id == 1   ? "c"
                   : id == 2 ? "d"
                             : "e"),
            {.kind = kSemaphore, .limit = 2, .wait = 10s, .id = id});
  }
  pass(5s);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
  EXPECT_EQ(outcome_of(2), Outcome::ok);
  EXPECT_EQ(outcome_of(3), Outcome::queued);
}

}  // namespace
}  // namespace lockd
