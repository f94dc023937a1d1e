// The rules of keys: the budget, idleness and forgetting; and the table told again from its events.
#include <set>
#include <string>
#include <vector>

#include "core/lock_table.h"
#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

TEST_F(LockTableTest, IdleKeysKeepTheirUnitUntilTheyAreForgotten) {
  reset({}, 2);
  release("a", "x", grant("a", "x"));
  pass(1s);
  release("b", "x", grant("b", "x"));
  EXPECT_EQ(acquire("c", "x").outcome, Outcome::max_keys);
  {
    KeyUnit unit = table_->reclaim_idle();  // the one that has been idle longest
    EXPECT_TRUE(unit);
    EXPECT_EQ(budget_->left(), 0);
    EXPECT_EQ(table_->acquire(now_, {"c", "x", kTtl}, nullptr, 0, std::move(unit)).outcome,
              Outcome::ok);
  }
  EXPECT_EQ(budget_->left(), 0);
  EXPECT_EQ(table_->keys(), 2u);
  EXPECT_TRUE(table_->reclaim_idle());   // b; its unit goes back, unused
  EXPECT_FALSE(table_->reclaim_idle());  // c is held
  EXPECT_EQ(budget_->left(), 1);
}

TEST_F(LockTableTest, AnIdleSemaphoreTakesTheLimitOfTheNextRequest) {
  release("k", "x", grant("k", "x", {.kind = kSemaphore, .limit = 3}), kSemaphore);
  EXPECT_EQ(acquire("k", "y", {.kind = kSemaphore, .limit = 5}).outcome, Outcome::ok);
}

TEST_F(LockTableTest, AnIdleSemaphoreMayKeepItsLimitUntilItIsForgotten) {
  reset({.keeps_idle_limits = true});
  const Fence fence = grant("k", "x", {.kind = kSemaphore, .limit = 3});
  ASSERT_EQ(table_->resize(now_, "k", 9, {}), Outcome::ok);  // until it is idle
  release("k", "x", fence, kSemaphore);
  const Time idle_since = now_;
  pass(10s);
  EXPECT_EQ(acquire("k", "y", {.kind = kSemaphore, .limit = 5}).outcome, Outcome::limit_mismatch);
  EXPECT_EQ(conflict_.limit, 3u);
  EXPECT_EQ(conflict_.holders, 0u);
  EXPECT_EQ(acquire("k", "y", {.kind = kSemaphore, .limit = 9, .wait = 1s}).outcome,
            Outcome::limit_mismatch);
  EXPECT_EQ(enqueue("k", secret(1, 11), {.kind = kSemaphore, .limit = 5}).outcome,
            Outcome::limit_mismatch);
  EXPECT_EQ(table_->stats().refusals.limit_mismatch, 3u);
  EXPECT_EQ(table_->forget_idle(idle_since, 1), 1u) << "a refused request is no use of the key";
  EXPECT_EQ(acquire("k", "y", {.kind = kSemaphore, .limit = 5}).outcome, Outcome::ok);
}

TEST_F(LockTableTest, AnIdleLockIsTakenInEitherMode) {
  reset({.keeps_idle_limits = true});
  release("k", "x", grant("k", "x"));
  release("k", "x", grant("k", "x", {.mode = Mode::shared}));
  release("k", "x", grant("k", "x"));
  // A semaphore of the same name is another key.
  EXPECT_EQ(acquire("k", "x", {.kind = kSemaphore, .limit = 5}).outcome, Outcome::ok);
}

// Events and what they rebuild.

class ReplayTest : public LockTableTest {
 protected:
  // Keeps the events, with keys and holders of their own.
  void keep() {
    for (Event e : table_->effects().events) {
      e.key = *texts_.emplace(e.key).first;
      if (!e.holder.is_secret())
        e.holder = std::string_view(*texts_.emplace(e.holder.name()).first);
      e.client = {*texts_.emplace(e.client.name).first, *texts_.emplace(e.client.peer).first,
                  *texts_.emplace(e.client.note).first};
      log_.push_back(e);
    }
    table_->effects().clear();
  }
  Fence take(std::string_view key, const Holder& holder) {
    const auto reply = table_->acquire(now_, {key, holder, kTtl}, this, 0);
    keep();
    return reply.grant.fence;
  }

  std::set<std::string, std::less<>> texts_;
  std::vector<Event> log_;
};

TEST_F(ReplayTest, ARecoveredHoldIsRenewedAndReleasedByTokenAndBelongsToNoSession) {
  const Fence fence = take("k", secret(7, 77));
  KeyBudget budget(100);
  LockTable copy({}, budget);
  for (const Event& e : log_) copy.apply(e);
  int steps = 100;
  EXPECT_TRUE(copy.end_session(now_, 7, false, &steps));
  EXPECT_EQ(copy.renew(now_, {"k", secret(9, 77), fence}, {}).outcome, Outcome::ok);
  EXPECT_EQ(copy.release(now_, {"k", secret(9, 78), fence}), Outcome::not_holder);
  EXPECT_EQ(copy.release(now_, {"k", secret(9, 77), fence}), Outcome::ok);
}

// A journal records holds alone, so a restart forgets idle keys and their limits.
TEST_F(ReplayTest, ARecoveredTableHasForgottenTheLimitsOfIdleSemaphores) {
  const TableOptions options{.keeps_idle_limits = true};
  reset(options);
  for (const std::uint32_t limit : {3u, 5u}) {
    const AcquireRequest request{"k", "x", kTtl, 0s, kSemaphore, limit};
    const auto reply = table_->acquire(now_, request, nullptr, 0);
    ASSERT_EQ(reply.outcome, Outcome::ok);
    keep();
    table_->release(now_, {"k", "x", reply.grant.fence, kSemaphore});
    keep();
    table_->forget_idle(now_, 1);
  }
  KeyBudget budget(100);
  LockTable copy(options, budget);
  for (const Event& e : log_) EXPECT_TRUE(copy.apply(e));
  const AcquireRequest other{"k", "y", kTtl, 0s, kSemaphore, 7};
  EXPECT_EQ(copy.acquire(now_, other, nullptr, 0).outcome, Outcome::ok);
}

TEST_F(ReplayTest, ARecoveredLeaseThatIsOverEndsAtTheFirstLook) {
  take("k", "x");
  KeyBudget budget(100);
  LockTable copy({}, budget);
  copy.advance(now_ + 100s, 100);  // the table's time is ahead when the event arrives
  for (const Event& e : log_) copy.apply(e);
  EXPECT_LE(copy.next_deadline(), now_ + 100s);
  EXPECT_EQ(copy.acquire(now_ + 100s, {"k", "y", kTtl}, nullptr, 0).outcome, Outcome::ok);
}

TEST_F(ReplayTest, RecoveredKeysMayExceedTheBudgetUntilTheyAreGone) {
  take("a", "x");
  const Fence b = take("b", "x");
  KeyBudget budget(1);
  LockTable copy({}, budget);
  for (const Event& e : log_) ASSERT_TRUE(copy.apply(e));
  EXPECT_EQ(copy.keys(), 2u);
  EXPECT_EQ(copy.acquire(now_, {"c", "x", kTtl}, nullptr, 0).outcome, Outcome::max_keys);
  copy.release(now_, {"b", "x", b});
  copy.forget_idle(now_, 10);
  EXPECT_EQ(copy.acquire(now_, {"c", "x", kTtl}, nullptr, 0).outcome, Outcome::max_keys);
}

TEST_F(ReplayTest, AKeyBeyondTheBudgetLeavesItsUnitToNobody) {
  const Fence a = take("a", "x");
  const Fence b = take("b", "x");
  KeyBudget budget(1);
  LockTable copy({}, budget);
  for (const Event& e : log_) ASSERT_TRUE(copy.apply(e));
  copy.release(now_, {"a", "x", a});
  copy.release(now_, {"b", "x", b});
  EXPECT_FALSE(copy.reclaim_idle());
  EXPECT_EQ(copy.keys(), 1u);
  EXPECT_EQ(budget.left(), 0);
  EXPECT_TRUE(copy.reclaim_idle());
  EXPECT_EQ(copy.keys(), 0u);
  EXPECT_EQ(budget.left(), 1);
}

// A snapshot gives a key's holds in order, behind what was granted while it was written. With a
// search for the place of each this takes minutes.
TEST_F(ReplayTest, ManyHoldsOfOneKeyComeBackInOrder) {
  constexpr Fence kHolds = 200'000;
  KeyBudget budget(1);
  LockTable copy({}, budget);
  Event granted{.type = Event::Type::granted, .kind = Kind::semaphore, .key = "pool", .ttl = kTtl};
  granted.limit = kHolds;
  granted.expires_at = now_ + kTtl;
  for (Fence i = 0; i < kHolds; ++i) {
    granted.fence = i == 0 ? kHolds : i;
    granted.holder = Holder::of_secret(granted.fence);
    ASSERT_TRUE(copy.apply(granted));
  }
  EXPECT_EQ(copy.check(), "");
}

// As when what several tables granted, each with fences of its own, is recovered into one.
TEST_F(ReplayTest, TwoSemaphoresMayHaveTheSameFences) {
  KeyBudget budget(100);
  LockTable copy({}, budget);
  Event granted{.type = Event::Type::granted, .kind = Kind::semaphore, .limit = 2, .ttl = kTtl};
  granted.expires_at = now_ + kTtl;
  for (const std::string_view key : {"a", "b"}) {
    for (const Fence fence : {Fence{1}, Fence{2}}) {
      granted.key = key;
      granted.fence = fence;
      granted.holder = Holder::of_secret(fence);
      ASSERT_TRUE(copy.apply(granted));
    }
  }
  EXPECT_EQ(copy.check(), "");
  for (const std::string_view key : {"a", "b"}) {
    const HoldId second{key, Holder::of_secret(2), 2, Kind::semaphore};
    EXPECT_EQ(copy.renew(now_, second, kTtl).outcome, Outcome::ok);
    EXPECT_EQ(copy.release(now_, second), Outcome::ok);
    EXPECT_NE(copy.release(now_, second), Outcome::ok);
    EXPECT_EQ(copy.check(), "");
  }
}

TEST_F(ReplayTest, ContradictionsAreRefused) {
  KeyBudget budget(100);
  LockTable copy({}, budget);
  Event granted{.type = Event::Type::granted, .key = "k", .holder = "a", .fence = 5, .ttl = 1s};
  EXPECT_TRUE(copy.apply(granted));
  granted.fence = 6;
  EXPECT_FALSE(copy.apply(granted)) << "two holders of a lock";
  granted.limit = 2;
  EXPECT_FALSE(copy.apply(granted)) << "another limit";
  granted.key = "";
  EXPECT_FALSE(copy.apply(granted)) << "no key";
  granted.key = "k2";
  granted.fence = kFenceMax + 1;
  EXPECT_FALSE(copy.apply(granted)) << "no fence";
  EXPECT_TRUE(copy.apply({.type = Event::Type::ended, .key = "k", .fence = 99}));
  EXPECT_EQ(copy.last_fence(), 99u);
}

}  // namespace
}  // namespace lockd
