#include "base/crc32.h"

#include <gtest/gtest.h>

namespace lockd {
namespace {

TEST(Crc32, OfTheCheckValue) { EXPECT_EQ(crc32("123456789"), 0xcbf43926); }

TEST(Crc32, OfNothing) { EXPECT_EQ(crc32(""), 0u); }

TEST(Crc32, OfKeysAsTheProtocolPageShowsThem) {
  EXPECT_EQ(crc32("my-key"), 0xd6e33ac1);
  EXPECT_EQ(crc32("orders/42"), 0x1612255e);
  EXPECT_EQ(crc32("my-job"), 0xa7ab7190);
  EXPECT_EQ(crc32("clé-日本"), 0x853d5232);
}

TEST(Crc32, OfBytesThatAreNegativeCharacters) { EXPECT_EQ(crc32("\xff\xff\xff\xff"), 0xffffffff); }

}  // namespace
}  // namespace lockd
