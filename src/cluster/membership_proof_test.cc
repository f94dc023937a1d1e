#include "cluster/membership_proof.h"

#include <gtest/gtest.h>

namespace lockd {
namespace {

const HashedSecret kSecret("what all servers of one cluster know");

Challenge challenge() {
  return {.node = "b", .asker_nonce = std::string(64, '1'), .answerer_nonce = std::string(64, '2')};
}

TEST(MembershipProof, IsGoodForItsChallengeAndItsEndAlone) {
  const std::string proof = prove(kSecret, challenge(), LinkEnd::asker);
  EXPECT_TRUE(proves(proof, kSecret, challenge(), LinkEnd::asker));
  EXPECT_FALSE(proves(proof, kSecret, challenge(), LinkEnd::answerer));  // sent back
  EXPECT_FALSE(proves(proof, HashedSecret("another"), challenge(), LinkEnd::asker));
  EXPECT_FALSE(proves("", kSecret, challenge(), LinkEnd::asker));
  for (std::string Challenge::*part : {&Challenge::node, &Challenge::asker_nonce,
                                       &Challenge::answerer_nonce, &Challenge::channel}) {
    Challenge other = challenge();
    other.*part += "0";
    EXPECT_FALSE(proves(proof, kSecret, other, LinkEnd::asker));
  }
}

// What belongs to one part of it cannot be moved to the next.
TEST(MembershipProof, KnowsWhereEachPartEnds) {
  Challenge moved = challenge();
  moved.node += moved.asker_nonce.back();
  moved.asker_nonce.pop_back();
  EXPECT_NE(prove(kSecret, challenge(), LinkEnd::asker), prove(kSecret, moved, LinkEnd::asker));
}

TEST(MembershipProof, HasAnotherNonceEveryTime) {
  TokenSource secrets;
  const std::string nonce = make_nonce(secrets);
  EXPECT_TRUE(is_nonce(nonce));
  EXPECT_NE(nonce, make_nonce(secrets));
  EXPECT_FALSE(is_nonce(nonce.substr(1)));
}

}  // namespace
}  // namespace lockd
