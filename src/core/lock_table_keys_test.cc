// Tests of the key budget, of idle keys, and of tables rebuilt from events.
#include <set>
#include <string>
#include <vector>

#include "core/lock_table.h"
#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

TEST_F(LockTableTest, IdleKeyKeepsItsUnitUntilItIsForgotten) {
  reset({}, 2);
  release("a", "x", grant("a", "x"));
  pass(1s);
  release("b", "x", grant("b", "x"));
  EXPECT_EQ(acquire("c", "x").outcome, Outcome::max_keys);
  {
    KeyUnit unit = table_->reclaim_idle();  // of a, the key that has been idle longest
    EXPECT_TRUE(unit);
    EXPECT_EQ(budget_->left(), 0);
    EXPECT_EQ(table_->acquire(now_, {"c", "x", kTtl}, nullptr, 0, std::move(unit)).outcome,
              Outcome::ok);
  }
  EXPECT_EQ(budget_->left(), 0);
  EXPECT_EQ(table_->keys(), 2u);
  EXPECT_TRUE(table_->reclaim_idle());   // of b; the unused unit returns to the budget
  EXPECT_FALSE(table_->reclaim_idle());  // c is held
  EXPECT_EQ(budget_->left(), 1);
}

TEST_F(LockTableTest, NextRequestSetsTheLimitOfAnIdleSemaphore) {
  release("k", "x", grant("k", "x", {.kind = kSemaphore, .limit = 3}), kSemaphore);
  EXPECT_EQ(acquire("k", "y", {.kind = kSemaphore, .limit = 5}).outcome, Outcome::ok);
}

TEST_F(LockTableTest, IdleSemaphoreCanKeepItsLimitUntilItIsForgotten) {
  reset({.keeps_idle_limits = true});
  const Fence fence = grant("k", "x", {.kind = kSemaphore, .limit = 3});
  ASSERT_EQ(table_->resize(now_, "k", 9, {}), Outcome::ok);  // until it is idle
  release("k", "x", fence, kSemaphore);
  const Time idle_since = now_;
  pass(10s);
  EXPECT_EQ(acquire("k", "y", {.kind = kSemaphore, .limit = 5}).outcome, Outcome::limit_mismatch);
  EXPECT_EQ(conflicts_.at(0).limit, 3u);
  EXPECT_EQ(conflicts_.at(0).holders, 0u);
  EXPECT_EQ(acquire("k", "y", {.kind = kSemaphore, .limit = 9, .wait = 1s}).outcome,
            Outcome::limit_mismatch);
  EXPECT_EQ(enqueue("k", secret(1, 11), {.kind = kSemaphore, .limit = 5}).outcome,
            Outcome::limit_mismatch);
  EXPECT_EQ(table_->stats().refusals.limit_mismatch, 3u);
  EXPECT_EQ(table_->forget_idle(idle_since, 1), 1u) << "a refused request does not use the key";
  EXPECT_EQ(acquire("k", "y", {.kind = kSemaphore, .limit = 5}).outcome, Outcome::ok);
}

TEST_F(LockTableTest, IdleLockIsGrantedInEitherMode) {
  reset({.keeps_idle_limits = true});
  release("k", "x", grant("k", "x"));
  release("k", "x", grant("k", "x", {.mode = Mode::shared}));
  release("k", "x", grant("k", "x"));
  // A semaphore of the same name is another key.
  EXPECT_EQ(acquire("k", "x", {.kind = kSemaphore, .limit = 5}).outcome, Outcome::ok);
}

class ReplayTest : public LockTableTest {
 protected:
  // Copies the events into log_, together with the texts they refer to.
  void log_events() {
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
  Fence logged_grant(std::string_view key, const Holder& holder) {
    const auto reply = table_->acquire(now_, {key, holder, kTtl}, this, 0);
    log_events();
    return reply.grant.fence;
  }

  std::set<std::string, std::less<>> texts_;
  std::vector<Event> log_;
};

TEST_F(ReplayTest, RecoveredHoldBelongsToItsSecretAndToNoSession) {
  const Fence fence = logged_grant("k", secret(7, 77));
  KeyBudget budget(100);
  LockTable copy({}, budget);
  for (const Event& e : log_) copy.apply(e);
  int steps = 100;
  EXPECT_TRUE(copy.end_session(now_, 7, false, &steps));
  EXPECT_EQ(copy.renew(now_, {"k", secret(9, 77), fence}, {}).outcome, Outcome::ok);
  EXPECT_EQ(copy.release(now_, {"k", secret(9, 78), fence}), Outcome::not_holder);
  EXPECT_EQ(copy.release(now_, {"k", secret(9, 77), fence}), Outcome::ok);
}

// A journal records holds only, so a restart forgets idle keys and their limits.
TEST_F(ReplayTest, RecoveryForgetsLimitsOfIdleSemaphores) {
  const TableOptions options{.keeps_idle_limits = true};
  reset(options);
  for (const std::uint32_t limit : {3u, 5u}) {
    const KeyRequest request{"k", "x", kTtl, 0s, kSemaphore, limit};
    const auto reply = table_->acquire(now_, request, nullptr, 0);
    ASSERT_EQ(reply.outcome, Outcome::ok);
    log_events();
    table_->release(now_, {"k", "x", reply.grant.fence, kSemaphore});
    log_events();
    table_->forget_idle(now_, 1);
  }
  KeyBudget budget(100);
  LockTable copy(options, budget);
  for (const Event& e : log_) EXPECT_TRUE(copy.apply(e));
  const KeyRequest other{"k", "y", kTtl, 0s, kSemaphore, 7};
  EXPECT_EQ(copy.acquire(now_, other, nullptr, 0).outcome, Outcome::ok);
}

TEST_F(ReplayTest, RecoveredLeaseThatIsDueExpiresInTheNextCall) {
  logged_grant("k", "x");
  KeyBudget budget(100);
  LockTable copy({}, budget);
  copy.advance(now_ + 100s, 100);  // the table's time is ahead when the event arrives
  for (const Event& e : log_) copy.apply(e);
  EXPECT_LE(copy.next_deadline(), now_ + 100s);
  EXPECT_EQ(copy.acquire(now_ + 100s, {"k", "y", kTtl}, nullptr, 0).outcome, Outcome::ok);
}

TEST_F(ReplayTest, RecoveredKeysMayExceedTheBudgetUntilTheyAreForgotten) {
  logged_grant("a", "x");
  const Fence b = logged_grant("b", "x");
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
  const Fence a = logged_grant("a", "x");
  const Fence b = logged_grant("b", "x");
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

// A snapshot lists a key's holds in order, after holds that were granted while it was written. If
// each insertion searched all holds, this test would take minutes.
TEST_F(ReplayTest, ManyHoldsOfOneKeyAreRecoveredFast) {
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

// This happens when one table recovers the grants of several tables, which number fences
// separately.
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
    const KeyHold second{key, Holder::of_secret(2), 2, Kind::semaphore};
    EXPECT_EQ(copy.renew(now_, second, kTtl).outcome, Outcome::ok);
    EXPECT_EQ(copy.release(now_, second), Outcome::ok);
    EXPECT_NE(copy.release(now_, second), Outcome::ok);
    EXPECT_EQ(copy.check(), "");
  }
}

TEST_F(ReplayTest, ContradictoryEventsAreRejected) {
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
