#include "server/buffer_budget.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "base/testing/chance.h"

namespace lockd {
namespace {

constexpr std::size_t kKib = 1024;

TEST(BufferBudget, CountsWhatAllHave) {
  BufferBudget budget(100 * kKib);
  BufferLedger one(budget);
  BufferLedger other(budget);
  BufferLedger::Account a;
  BufferLedger::Account b;
  one.settle(a, 60 * kKib);
  other.settle(b, 40 * kKib);
  EXPECT_EQ(budget.bytes(), 100 * kKib);
  EXPECT_FALSE(budget.is_exceeded());
  other.settle(b, 41 * kKib);
  EXPECT_TRUE(budget.is_exceeded());
  one.settle(a, 0);
  other.settle(b, 0);
  EXPECT_EQ(budget.bytes(), 0U);
}

TEST(BufferBudget, ZeroIsNoLimit) {
  BufferBudget budget(0);
  BufferLedger ledger(budget);
  BufferLedger::Account account;
  ledger.settle(account, std::size_t{1} << 40);
  EXPECT_FALSE(budget.is_exceeded());
  EXPECT_EQ(ledger.largest_over_budget(), nullptr);
  ledger.settle(account, 0);
}

TEST(BufferBudget, TheLargestOfAllWorkersGoesFirst) {
  BufferBudget budget(100 * kKib);
  BufferLedger one(budget);
  BufferLedger other(budget);
  std::array<BufferLedger::Account, 3> accounts;
  one.settle(accounts[0], 40 * kKib);
  one.settle(accounts[1], 70 * kKib);
  EXPECT_EQ(one.largest_over_budget(), &accounts[1]);
  other.settle(accounts[2], 300 * kKib);
  EXPECT_EQ(one.largest_over_budget(), nullptr) << "another has larger";
  EXPECT_EQ(other.largest_over_budget(), &accounts[2]);
  other.settle(accounts[2], 0);
  EXPECT_EQ(one.largest_over_budget(), &accounts[1]);
  one.settle(accounts[1], 0);
  EXPECT_EQ(one.largest_over_budget(), nullptr) << "the budget holds";
  one.settle(accounts[0], 0);
}

TEST(BufferBudget, NobodyIsClosedForLittle) {
  BufferBudget budget(100);
  BufferLedger ledger(budget);
  BufferLedger::Account account;
  ledger.settle(account, BufferLedger::kLargeMin - 1);
  EXPECT_TRUE(budget.is_exceeded());
  EXPECT_EQ(ledger.largest_over_budget(), nullptr);
  ledger.settle(account, BufferLedger::kLargeMin);
  EXPECT_EQ(ledger.largest_over_budget(), &account);
  ledger.settle(account, 0);
}

// Whatever comes and goes, in whatever order: what is counted is there, and all of it is given back
// by those who are closed.
TEST(BufferBudget, NothingIsLostInAnyHistory) {
  Chance chance(1);
  BufferBudget budget(1024 * kKib);
  std::array<BufferLedger, 2> ledgers{BufferLedger(budget), BufferLedger(budget)};
  std::array<std::vector<BufferLedger::Account>, 2> accounts{
      std::vector<BufferLedger::Account>(20), std::vector<BufferLedger::Account>(20)};
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t worker = chance.below(2);
    BufferLedger::Account& one = accounts[worker][chance.below(20)];
    ledgers[worker].settle(one, chance.below(4) == 0 ? 0 : chance.below(512 * kKib));
    for (std::size_t turn = 0; budget.is_exceeded() && turn < 100; ++turn) {
      BufferLedger& ledger = ledgers[turn % 2];
      if (BufferLedger::Account* largest = ledger.largest_over_budget()) {
        ledger.settle(*largest, 0);
      }
    }
    std::uint64_t sum = 0;
    for (const auto& part : accounts) {
      for (const BufferLedger::Account& account : part) sum += account.bytes();
    }
    ASSERT_EQ(budget.bytes(), sum) << step;
    ASSERT_FALSE(budget.is_exceeded()) << step;
  }
  for (const std::size_t worker : {0U, 1U}) {
    for (BufferLedger::Account& account : accounts[worker]) ledgers[worker].settle(account, 0);
  }
  EXPECT_EQ(budget.bytes(), 0U);
}

}  // namespace
}  // namespace lockd
