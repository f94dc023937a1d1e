#include "core/key_index.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace lockd {
namespace {

class KeyIndexTest : public ::testing::Test {
 protected:
  void add(int i) {
    auto s = Semaphore::create(Kind::lock, "key-" + std::to_string(i));
    index_.insert(s.get());
    keys_[i] = std::move(s);
  }
  void remove(int i) {
    index_.remove(keys_[i].get());
    keys_.erase(i);
  }
  void walk(Cursor& cursor, std::size_t max, std::vector<std::string>& seen) {
    index_.walk(cursor, max, [&](const Semaphore& s) { seen.emplace_back(s.key()); });
  }

  KeyIndex index_{99};
  std::map<int, std::unique_ptr<Semaphore>> keys_;
};

TEST_F(KeyIndexTest, FindsWhatIsThereThroughGrowthAndShrinking) {
  for (int i = 0; i < 10'000; ++i) add(i);
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_EQ(index_.find(Kind::lock, "key-" + std::to_string(i)), keys_[i].get());
  }
  EXPECT_EQ(index_.find(Kind::semaphore, "key-1"), nullptr);
  EXPECT_EQ(index_.find(Kind::lock, "key-10000"), nullptr);
  for (int i = 0; i < 9'990; ++i) remove(i);
  EXPECT_EQ(index_.size(), 10u);
  for (int i = 0; i < 9'990; ++i) {
    ASSERT_EQ(index_.find(Kind::lock, "key-" + std::to_string(i)), nullptr);
  }
  for (int i = 9'990; i < 10'000; ++i) {
    ASSERT_NE(index_.find(Kind::lock, "key-" + std::to_string(i)), nullptr);
  }
}

TEST_F(KeyIndexTest, AWalkInStepsSeesEveryKeyOnce) {
  for (int i = 0; i < 1'000; ++i) add(i);
  for (std::size_t step : {1u, 7u, 100u, 5'000u}) {
    std::vector<std::string> seen;
    for (Cursor cursor; !cursor.done;) walk(cursor, step, seen);
    EXPECT_EQ(seen.size(), 1'000u);
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 1'000u);
  }
}

// Whatever comes and goes meanwhile: what was there throughout is seen, and nothing twice.
TEST_F(KeyIndexTest, AWalkSurvivesGrowthAndShrinkingBetweenItsSteps) {
  for (int i = 0; i < 500; ++i) add(i);
  std::vector<std::string> seen;
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
  const std::set<std::string> unique(seen.begin(), seen.end());
  EXPECT_EQ(unique.size(), seen.size());
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(unique.contains("key-" + std::to_string(i))) << i;
}

}  // namespace
}  // namespace lockd
