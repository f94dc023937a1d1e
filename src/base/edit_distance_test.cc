#include "base/edit_distance.h"

#include <gtest/gtest.h>

namespace lockd {
namespace {

TEST(EditDistance, CountsLetters) {
  EXPECT_EQ(edit_distance("", "", 9), 0U);
  EXPECT_EQ(edit_distance("port", "port", 9), 0U);
  EXPECT_EQ(edit_distance("prot", "port", 9), 2U);
  EXPECT_EQ(edit_distance("ports", "port", 9), 1U);
  EXPECT_EQ(edit_distance("", "port", 9), 4U);
  EXPECT_EQ(edit_distance("kitten", "sitting", 9), 3U);
}

TEST(EditDistance, GoesNoFurtherThanItsLimit) {
  EXPECT_EQ(edit_distance("kitten", "sitting", 3), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting", 2), 2U);
  EXPECT_EQ(edit_distance("a", "abcdef", 5), 5U);
  EXPECT_EQ(edit_distance("abcdef", "uvwxyz", 4), 4U);
  EXPECT_EQ(edit_distance("abcdef", "bcdefg", 3), 2U);
}

}  // namespace
}  // namespace lockd
