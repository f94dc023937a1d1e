#include "core/hold_budget.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

const Holder kHolder = "holder";

std::int64_t take_all(HoldUnits& units) {
  std::int64_t taken = 0;
  while (units.take(kHolder) == Outcome::ok) ++taken;
  return taken;
}

TEST(HoldBudget, UnlimitedBudgetCountsNothing) {
  HoldBudget budget({});
  HoldUnits units(&budget);
  HoldUnits without_budget(nullptr);
  EXPECT_FALSE(units.counts());
  EXPECT_FALSE(without_budget.counts());
  EXPECT_EQ(units.take(kHolder), Outcome::ok);
  EXPECT_EQ(units.in_use(), 0);
}

TEST(HoldBudget, SmallCapIsExactOverSeveralTables) {
  HoldBudget budget({.holds_max = 1000});
  HoldUnits a(&budget);
  HoldUnits b(&budget);
  EXPECT_EQ(take_all(a), 1000);
  for (int i = 0; i < 300; ++i) a.give_back(kHolder);
  EXPECT_EQ(take_all(b), 300);
  b.give_back(kHolder);
  EXPECT_EQ(a.take(kHolder), Outcome::ok);
  EXPECT_EQ(b.take(kHolder), Outcome::max_holds);
  EXPECT_EQ(budget.left(), 0);
}

// The difference is the units that the other tables cache.
TEST(HoldBudget, LargeCapIsNeverExceededAndRefusesAtMostAThousandthEarly) {
  constexpr std::int64_t kMax = 300'000;
  HoldBudget budget({.holds_max = kMax});
  std::vector<std::unique_ptr<HoldUnits>> tables;
  for (int i = 0; i < 64; ++i) tables.push_back(std::make_unique<HoldUnits>(&budget));
  for (const auto& table : tables) {
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(table->take(kHolder), Outcome::ok);
    for (int i = 0; i < 999; ++i) table->give_back(kHolder);
  }
  const std::int64_t more = take_all(*tables.front());
  EXPECT_LE(more + 64, kMax);
  EXPECT_GE(more + 64, kMax - kMax / 1000);
  tables.clear();
  EXPECT_EQ(budget.left(), kMax);
}

TEST(HoldBudget, OverdrawnBudgetRefusesUntilEnoughHoldsEnd) {
  for (const std::int64_t max : {10, 1'000'000}) {
    HoldBudget budget({.holds_max = static_cast<std::uint64_t>(max)});
    HoldUnits a(&budget);
    HoldUnits b(&budget);
    for (std::int64_t i = 0; i < max + 500; ++i) a.take_beyond_limit(kHolder);
    for (int i = 0; i < 500; ++i) {
      ASSERT_EQ(b.take(kHolder), Outcome::max_holds) << i;
      ASSERT_EQ(a.take(kHolder), Outcome::max_holds) << i;
      a.give_back(kHolder);
    }
    EXPECT_EQ(a.in_use(), max);
    for (int i = 0; i < 64; ++i) a.give_back(kHolder);
    EXPECT_EQ(a.take(kHolder), Outcome::ok);
  }
}

TEST(HoldBudget, ClientsAreLimitedSeparately) {
  HoldBudget budget({.holds_per_client_max = 2});
  HoldUnits a(&budget);
  HoldUnits b(&budget);
  const Holder session = Holder::of_secret(7, 1);
  const Holder similar_name = "1";
  EXPECT_EQ(a.take(session), Outcome::ok);
  EXPECT_EQ(b.take(Holder::of_secret(8, 1)), Outcome::ok);
  EXPECT_EQ(b.take(session), Outcome::max_client_holds);
  EXPECT_EQ(a.take(Holder::of_secret(7, 2)), Outcome::ok);
  EXPECT_EQ(a.take(similar_name), Outcome::ok);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.take(Holder::of_secret(7)), Outcome::ok);  // no client
  a.give_back(session);
  EXPECT_EQ(b.take(session), Outcome::ok);
}

class HoldsMaxTest : public LockTableTest {
 protected:
  void limit(const HoldBudget::Caps& caps, const TableOptions& options = {}) {
    table_.reset();
    holds_.emplace(caps);
    table_.emplace(options, *budget_, &*holds_);
  }
  void TearDown() override { table_.reset(); }

  std::optional<HoldBudget> holds_;
};

// Recovery keeps the deadline that was granted; ttl_max applies from the next renewal on.
TEST_F(HoldsMaxTest, RecoveredLeaseIsCappedWhenItIsRenewed) {
  limit({}, {.ttl_max = 60s});
  const Event event{.type = Event::Type::granted,
                    .limit = 1,
                    .key = "a",
                    .holder = "x",
                    .fence = 5,
                    .ttl = 2h,
                    .expires_at = now_ + 2h};
  ASSERT_TRUE(table_->apply(event));
  pass(1h);
  const auto renewed = renew("a", "x", 5);
  EXPECT_EQ(renewed.outcome, Outcome::ok);
  EXPECT_EQ(renewed.grant.expires_at, now_ + 60s);
}

}  // namespace
}  // namespace lockd
