#include "base/coding.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockd {
namespace {

std::string varint(std::uint64_t value) {
  char bytes[kVarintSizeMax];
  return {bytes, store_varint(bytes, value)};
}

TEST(Coding, IntegersAreLittleEndian) {
  char bytes[4];
  store(bytes, std::uint32_t{0x01020304});
  EXPECT_EQ(std::string(bytes, 4), "\x04\x03\x02\x01");
  std::string_view left(bytes, 4);
  std::uint64_t too_long = 0;
  EXPECT_FALSE(take(left, &too_long));
  std::uint16_t half = 0;
  ASSERT_TRUE(take(left, &half));
  EXPECT_EQ(half, 0x0304);
  EXPECT_EQ(left.size(), 2U);
}

TEST(Coding, VarintsComeBack) {
  std::vector<std::uint64_t> values{0, 1, 300, UINT64_MAX};
  for (int bit = 1; bit < 64; ++bit) {
    values.push_back(std::uint64_t{1} << bit);
    values.push_back((std::uint64_t{1} << bit) - 1);
  }
  for (const std::uint64_t value : values) {
    const std::string bytes = varint(value) + "rest";
    std::string_view left = bytes;
    std::uint64_t back = 0;
    ASSERT_TRUE(take_varint(left, &back)) << value;
    EXPECT_EQ(back, value);
    EXPECT_EQ(left, "rest");
  }
  EXPECT_EQ(varint(300), "\xac\x02");
  EXPECT_EQ(varint(UINT64_MAX).size(), kVarintSizeMax);
}

TEST(Coding, RefusesWhatIsNoVarint) {
  using namespace std::string_literals;
  const std::string refused[] = {
      "",                       // nothing
      "\x80",                   // cut short
      "\x80\x00"s,              // a long way to say 0
      "\xff\x00"s,              // a long way to say 127
      std::string(10, '\xff'),  // more than 64 bits
      std::string(9, '\xff') + "\x02",
  };
  for (const std::string& bytes : refused) {
    std::string_view left = bytes;
    std::uint64_t value = 7;
    EXPECT_FALSE(take_varint(left, &value));
    EXPECT_EQ(left, bytes);
    EXPECT_EQ(value, 7U);
  }
}

}  // namespace
}  // namespace lockd
