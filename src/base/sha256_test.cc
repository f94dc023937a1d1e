#include "base/sha256.h"

#include <gtest/gtest.h>

namespace lockd {
namespace {

TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(hex_of(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_of(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, KeyedIsThatOfTheStandard) {  // RFC 4231, the second case
  EXPECT_EQ(hex_of(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Sha256, HexIsReadInLettersOfEitherSize) {
  const Sha256 digest = sha256("abc");
  EXPECT_EQ(parse_sha256(hex_of(digest)), digest);
  EXPECT_EQ(parse_sha256("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"),
            digest);
}

TEST(Sha256, NothingElseIsADigest) {
  const std::string hex = hex_of(sha256("abc"));
  EXPECT_FALSE(parse_sha256(""));
  EXPECT_FALSE(parse_sha256(hex.substr(1)));
  EXPECT_FALSE(parse_sha256(hex + "0"));
  EXPECT_FALSE(parse_sha256("g" + hex.substr(1)));
  EXPECT_FALSE(parse_sha256(" " + hex.substr(1)));
}

}  // namespace
}  // namespace lockd
