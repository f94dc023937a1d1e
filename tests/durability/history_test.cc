#include "durability/history.h"

#include <gtest/gtest.h>

namespace lockd {
namespace {

using namespace std::chrono_literals;

ToldGrant grant(Fence fence, int asked_s, int told_s, int held_until_s) {
  const auto at = [](int seconds) { return Instant(std::chrono::seconds(seconds)); };
  return {fence, at(asked_s), at(told_s), at(held_until_s)};
}

std::string contradiction(std::uint32_t limit, std::initializer_list<ToldGrant> grants) {
  History history;
  for (const ToldGrant& grant : grants) history.add("stone", limit, grant);
  return history.contradiction();
}

TEST(HistoryTest, AcceptsOneAfterTheOther) {
  EXPECT_EQ(contradiction(1, {grant(1, 0, 1, 5), grant(2, 2, 5, 9), grant(7, 9, 9, 12)}), "");
}

// What a client hears late may have happened early.
TEST(HistoryTest, AcceptsWhatOverlapsOnlyOnTheWire) {
  EXPECT_EQ(contradiction(1, {grant(1, 0, 8, 3), grant(2, 1, 4, 9)}), "");
  EXPECT_EQ(contradiction(1, {grant(2, 0, 8, 9), grant(1, 1, 4, 5)}), "");
}

TEST(HistoryTest, AcceptsAsManyAsTheLimit) {
  EXPECT_EQ(contradiction(2, {grant(1, 0, 1, 9), grant(2, 0, 1, 4), grant(3, 2, 5, 9)}), "");
}

TEST(HistoryTest, RefusesTwoHolders) {
  EXPECT_NE(contradiction(1, {grant(1, 0, 1, 5), grant(2, 2, 4, 9)}), "");
}

TEST(HistoryTest, RefusesAHolderTooMany) {
  EXPECT_NE(contradiction(2, {grant(1, 0, 1, 9), grant(2, 0, 1, 6), grant(3, 2, 5, 9)}), "");
}

// Not only the neighbour counts.
TEST(HistoryTest, RefusesASecondHolderBehindAShortOne) {
  EXPECT_NE(contradiction(1, {grant(1, 0, 9, 20), grant(2, 0, 21, 10), grant(3, 2, 15, 16)}), "");
}

TEST(HistoryTest, RefusesAFenceTwice) {
  EXPECT_NE(contradiction(1, {grant(1, 0, 1, 2), grant(1, 3, 4, 5)}), "");
}

TEST(HistoryTest, RefusesAFenceThatWentBack) {
  EXPECT_NE(contradiction(1, {grant(8, 0, 1, 2), grant(5, 3, 4, 5)}), "");
}

TEST(HistoryTest, KeepsKeysApart) {
  History history;
  history.add("stone", 1, grant(8, 0, 1, 9));
  history.add("pool", 1, grant(5, 3, 4, 5));
  EXPECT_EQ(history.contradiction(), "");
  EXPECT_EQ(history.size(), 2U);
}

}  // namespace
}  // namespace lockd
