#include "core/key_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace lockd {
namespace {

class KeyIndexTest : public ::testing::Test {
 protected:
  // Odd numbers are semaphores, and share their names with locks.
  static std::string name_of(int i) { return "key-" + std::to_string(i / 2); }
  Key* find(int i) { return index_.find(i % 2 == 0 ? Kind::lock : Kind::semaphore, name_of(i)); }
  void add(int i) {
    auto s = Key::create(i % 2 == 0 ? Kind::lock : Kind::semaphore, name_of(i));
    index_.insert(s.get());
    keys_[i] = std::move(s);
  }
  void remove(int i) {
    index_.remove(keys_[i].get());
    keys_.erase(i);
  }
  void walk(Cursor& cursor, std::size_t max, std::vector<const Key*>& seen) {
    const std::size_t before = seen.size();
    index_.walk(cursor, max, [&](const Key& s) { seen.push_back(&s); });
    EXPECT_LE(seen.size() - before, max);
    EXPECT_TRUE(cursor.done || seen.size() - before == max);
  }

  KeyIndex index_{HashKey::of_seed(99)};
  std::map<int, std::unique_ptr<Key>> keys_;
};

TEST_F(KeyIndexTest, FindsKeysAfterGrowthAndShrinking) {
  for (int i = 0; i < 10'000; ++i) add(i);
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_EQ(find(i), keys_[i].get());
  }
  EXPECT_EQ(find(10'000), nullptr);
  for (int i = 0; i < 9'990; ++i) remove(i);
  EXPECT_EQ(index_.size(), 10u);
  for (int i = 0; i < 9'990; ++i) {
    ASSERT_EQ(find(i), nullptr);
  }
  for (int i = 9'990; i < 10'000; ++i) {
    ASSERT_NE(find(i), nullptr);
  }
}

TEST_F(KeyIndexTest, WalkInStepsVisitsEveryKeyOnce) {
  for (int i = 0; i < 1'000; ++i) add(i);
  for (std::size_t step : {1u, 7u, 100u, 5'000u}) {
    std::vector<const Key*> seen;
    for (Cursor cursor; !cursor.done;) walk(cursor, step, seen);
    EXPECT_EQ(seen.size(), 1'000u);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 1'000u);
  }
}

// The walk visits each key that was present throughout exactly once.
TEST_F(KeyIndexTest, WalkSurvivesGrowthAndShrinkingBetweenItsSteps) {
  for (int i = 0; i < 500; ++i) add(i);
  std::vector<const Key*> seen;
  int next = 10'000;
  int steps = 0;
  for (Cursor cursor; !cursor.done; ++steps) {
    walk(cursor, 10, seen);
    if (steps < 20) {
      for (int i = 0; i < 1'000; ++i) add(next++);
    } else {
      for (int i = 0; i < 1'000 && next > 10'000; ++i) remove(--next);
    }
  }
  EXPECT_GT(steps, 40);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(std::ranges::count(seen, keys_[i].get()), 1) << i;
}

TEST_F(KeyIndexTest, WalkMayStartAnywhere) {
  std::vector<const Key*> all;
  for (int i = 0; i < 100; ++i) add(i);
  Cursor whole;
  walk(whole, 1'000, all);
  for (std::uint64_t rank : {std::uint64_t{0}, std::uint64_t{1} << 63, UINT64_MAX}) {
    std::vector<const Key*> seen;
    Cursor cursor{.rank = rank};
    while (!cursor.done) walk(cursor, 3, seen);
    EXPECT_TRUE(std::equal(seen.rbegin(), seen.rend(), all.rbegin())) << "another order";
    EXPECT_EQ(rank == 0, seen.size() == all.size());
  }
}

}  // namespace
}  // namespace lockd
