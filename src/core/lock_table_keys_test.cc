// The rules of keys: the budget, idleness and forgetting; and the table told again from its events.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/lock_table.h"
#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

TEST_F(LockTableTest, KeysAreCappedExactlyOverBothNamespaces) {
  reset({}, 2);
  grant("a", "x");
  grant("a", "x", {.kind = Kind::semaphore, .limit = 5});
  EXPECT_EQ(acquire("b", "x").outcome, Outcome::max_keys);
  EXPECT_EQ(enqueue("b", secret(1, 1)).outcome, Outcome::max_keys);
  EXPECT_EQ(acquire("a", "y").outcome, Outcome::held);
  EXPECT_EQ(table_->keys(), 2u);
  EXPECT_EQ(budget_->left(), 0);
}

TEST_F(LockTableTest, RenewReleaseAndAwaitCreateNoKey) {
  renew("k", "a", 1);
  release("k", "a", 1);
  await_turn("k", 1);
  table_->fence(now_, "k");
  EXPECT_EQ(table_->keys(), 0u);
}

TEST_F(LockTableTest, AKeyThatWasNeverGrantedIsNotThere) {
  reset({.last_fence = kFenceMax});
  EXPECT_EQ(acquire("k", "a").outcome, Outcome::fences_exhausted);
  EXPECT_EQ(table_->keys(), 0u);
  EXPECT_EQ(budget_->left(), 1'000);
}

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

TEST_F(LockTableTest, AUnitThatIsNotNeededGoesBack) {
  reset({}, 2);
  grant("a", "x");
  EXPECT_EQ(table_->acquire(now_, {"a", "y", kTtl}, nullptr, 0, budget_->take()).outcome,
            Outcome::held);
  EXPECT_EQ(budget_->left(), 1);
}

TEST_F(LockTableTest, OnlyKeysIdleForLongEnoughAreForgotten) {
  release("a", "x", grant("a", "x"));
  pass(10s);
  release("b", "x", grant("b", "x"));
  grant("c", "x");
  EXPECT_EQ(table_->forget_idle(now_ - 5s, 10), 1u);
  EXPECT_EQ(table_->keys(), 2u);
  // Held and released again: idle from then on.
  release("b", "x", grant("b", "x"));
  pass(5s);
  EXPECT_EQ(table_->forget_idle(now_ - 6s, 10), 0u);
  EXPECT_EQ(table_->forget_idle(now_, 10), 1u);
  EXPECT_EQ(table_->forget_idle(now_, 10), 0u);
}

TEST_F(LockTableTest, ABadTokenDoesNotTouchTheIdleTime) {
  const Fence fence = grant("a", "x");
  release("a", "x", fence);
  const Time idle_since = now_;
  pass(10s);
  EXPECT_EQ(release("a", "x", fence), Outcome::expired);
  EXPECT_EQ(renew("a", "x", fence).outcome, Outcome::expired);
  EXPECT_EQ(table_->forget_idle(idle_since, 10), 1u);
}

TEST_F(LockTableTest, ForgettingIsBounded) {
  for (int i = 0; i < 100; ++i) {
    const std::string key = "k" + std::to_string(i);
    release(key, "x", grant(key, "x"));
  }
  EXPECT_EQ(table_->forget_idle(now_, 30), 30u);
  EXPECT_EQ(table_->keys(), 70u);
}

// Events and what they rebuild.

using Row = std::tuple<std::string, Kind, std::uint32_t, Fence, std::string, std::uint64_t,
                       Duration, std::uint64_t>;

std::vector<Row> holds_of(const LockTable& table) {
  std::vector<Row> rows;
  for (Cursor cursor; !cursor.done;) {
    std::vector<Event> events;
    table.describe(cursor, 3, events);
    for (const Event& e : events) {
      rows.emplace_back(e.key, e.kind, e.limit, e.fence, e.holder.name(), e.holder.secret(), e.ttl,
                        e.expires_at.ns);
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

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
  Fence take(std::string_view key, const Holder& holder, Kind kind = Kind::lock,
             std::uint32_t limit = 1, Duration wait = 0s) {
    const auto reply = table_->acquire(now_, {key, holder, kTtl, wait, kind, limit}, this, ++ids_);
    keep();
    return reply.grant.fence;
  }
  void a_history() {
    const Fence a = take("a", "x");
    take("b", secret(3, 33));
    take("b", "waits", Kind::lock, 1, 60s);
    const Fence p = take("pool", "x", Kind::semaphore, 3);
    take("pool", "a name longer than fifteen bytes", Kind::semaphore, 3);
    take("pool", "y", Kind::semaphore, 3);
    now_ = now_ + 5s;
    table_->renew(now_, {"a", "x", a}, 100s);
    keep();
    table_->release(now_, {"pool", "x", p, Kind::semaphore});
    keep();
    take("pool", "z", Kind::semaphore, 3);
    now_ = now_ + 25s;  // b and the first two of the pool run out
    table_->advance(now_, 100);
    keep();
  }

  std::set<std::string, std::less<>> texts_;
  std::vector<Event> log_;
  std::uint64_t ids_ = 0;
};

TEST_F(ReplayTest, ApplyingTheEventsGivesTheTableThatCausedThem) {
  a_history();
  KeyBudget budget(100);
  LockTable copy({}, budget);
  for (const Event& e : log_) ASSERT_TRUE(copy.apply(e));
  EXPECT_EQ(holds_of(copy), holds_of(*table_));
  EXPECT_EQ(copy.last_fence(), table_->last_fence());
  EXPECT_EQ(copy.check(), "");
  for (const Event& e : log_) {
    if (e.type != Event::Type::ended) continue;
    ASSERT_TRUE(copy.apply(e));  // idempotent
  }
  EXPECT_EQ(holds_of(copy), holds_of(*table_));
}

TEST_F(ReplayTest, WhatIsDescribedRebuildsTheTable) {
  a_history();
  KeyBudget budget(100);
  LockTable copy({}, budget);
  std::vector<Event> events;
  Cursor cursor;
  table_->describe(cursor, SIZE_MAX, events);
  for (int twice = 0; twice < 2; ++twice) {
    for (auto e = events.rbegin(); e != events.rend(); ++e) ASSERT_TRUE(copy.apply(*e));
  }
  copy.apply({.type = Event::Type::fence_floor, .fence = table_->last_fence()});
  EXPECT_EQ(holds_of(copy), holds_of(*table_));
  EXPECT_EQ(copy.last_fence(), table_->last_fence());
  EXPECT_EQ(copy.check(), "");
}

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
