#include "base/crc.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

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

TEST(Crc32c, HasTheKnownValues) {
  // The check value of the catalogue, and the vectors of RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(Crc32c, IsTheSameByTableAndByInstruction) {
  std::mt19937_64 random(1);
  std::string bytes;
  for (int size = 0; size < 300; ++size) {
    EXPECT_EQ(crc32c(bytes), crc32c_by_table(bytes)) << size;
    // From any address: the instruction reads eight bytes at a time.
    for (std::size_t from = 1; from < 8 && from < bytes.size(); ++from) {
      const std::string_view part = std::string_view(bytes).substr(from);
      EXPECT_EQ(crc32c(part), crc32c_by_table(part)) << size << " from " << from;
    }
    bytes.push_back(static_cast<char>(random()));
  }
}

}  // namespace
}  // namespace lockd
