// Tests of grants, leases, fences, renewals, releases and refusals.
#include "core/lock_table.h"

#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

TEST_F(LockTableTest, FreeLockIsGrantedWithALeaseFromNow) {
  const auto reply = acquire("k", "a", {.ttl = 5s});
  EXPECT_EQ(reply.outcome, Outcome::ok);
  EXPECT_EQ(reply.grant.fence, 1u);
  EXPECT_EQ(reply.grant.ttl, 5s);
  EXPECT_EQ(reply.grant.expires_at, now_ + 5s);
}

TEST_F(LockTableTest, LeaseExpiresAtItsDeadlineAndNotANanosecondEarlier) {
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

TEST_F(LockTableTest, RefusedRenewAndReleaseReturnTheReasonAndChangeNothing) {
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
      {"an older fence, and the name of the holder", "k", "b", old, Outcome::stale},
      {"another name", "k", "a", fence, Outcome::not_holder},
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

TEST_F(LockTableTest, AllBitsOfASecretAreCompared) {
  const Fence fence = grant("k", secret(1, 0x1122334455667788));
  EXPECT_EQ(release("k", secret(1, 0x1122334455667789), fence), Outcome::not_holder);
  EXPECT_EQ(release("k", secret(1, 0x0122334455667788), fence), Outcome::not_holder);
  EXPECT_EQ(release("k", "tcp:1", fence), Outcome::not_holder);
  // The lock token, not the connection, authorizes a release.
  EXPECT_EQ(release("k", secret(2, 0x1122334455667788), fence), Outcome::ok);
}

TEST_F(LockTableTest, FenceReturnsTheCurrentGrantOrAnUpperBoundOfPastGrants) {
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

TEST_F(LockTableTest, InvalidRequestIsRefusedWithTheReasonAndChangesNothing) {
  const std::string longest(256, 'x');
  const std::string too_long(257, 'x');
  const struct {
    const char* what;
    std::string_view key;
    Holder holder;
    Params params;
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
    EXPECT_EQ(acquire(c.key, c.holder, c.params).outcome, c.outcome) << c.what;
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
  EXPECT_EQ(outcome_of(1), Outcome::fences_exhausted);  // the wait ends, as it cannot be granted
}

TEST_F(LockTableTest, SemaphoreHasAtMostLimitHolders) {
  const Fence a = grant("s", "a", {.kind = kSemaphore, .limit = 2});
  const Fence b = grant("s", "b", {.kind = kSemaphore, .limit = 2});
  EXPECT_LT(a, b);
  EXPECT_EQ(acquire("s", "c", {.kind = kSemaphore, .limit = 2}).outcome, Outcome::held);
  EXPECT_EQ(conflicts_.at(0).holders, 2u);
  EXPECT_EQ(conflicts_.at(0).limit, 2u);
  EXPECT_EQ(release("s", "a", a, kSemaphore), Outcome::ok);
  EXPECT_EQ(acquire("s", "c", {.kind = kSemaphore, .limit = 2}).outcome, Outcome::ok);
}

}  // namespace
}  // namespace lockd
