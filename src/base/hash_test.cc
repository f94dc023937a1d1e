#include "base/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <string>

namespace lockd {
namespace {

TEST(Hash, DependsOnEveryByteTheLengthAndTheSeed) {
  std::set<std::uint64_t> seen;
  std::size_t hashed = 0;
  for (std::size_t size = 0; size <= 64; ++size) {
    const std::string zeros(size, '\0');
    seen.insert(hash_bytes(zeros, 1));
    seen.insert(hash_bytes(zeros, 2));
    hashed += 2;
    for (std::size_t i = 0; i < size; ++i) {
      std::string changed = zeros;
      changed[i] = 1;
      seen.insert(hash_bytes(changed, 1));
      ++hashed;
    }
  }
  EXPECT_EQ(seen.size(), hashed);
}

TEST(Hash, FlipsAboutHalfOfTheBitsForEveryBitOfTheInput) {
  for (std::size_t size : {1u, 3u, 7u, 8u, 15u, 16u, 17u, 40u}) {
    const std::string key(size, 'k');
    int flipped = 0;
    for (std::size_t bit = 0; bit < size * 8; ++bit) {
      std::string changed = key;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
      flipped += std::popcount(hash_bytes(key, 7) ^ hash_bytes(changed, 7));
    }
    const double mean = flipped / (static_cast<double>(size) * 8);
    EXPECT_NEAR(mean, 32, 4) << "size " << size;
  }
}

TEST(Hash, SpreadsNumberedKeysOverBucketsAtBothEnds) {
  constexpr int kKeys = 64 * 1000;
  int low[64] = {};
  int high[64] = {};
  for (int i = 0; i < kKeys; ++i) {
    const std::uint64_t hash = hash_bytes("key-" + std::to_string(i), 42);
    ++low[hash & 63];
    ++high[hash >> 58];
  }
  for (int b = 0; b < 64; ++b) {
    EXPECT_NEAR(low[b], 1000, 200);
    EXPECT_NEAR(high[b], 1000, 200);
  }
}

}  // namespace
}  // namespace lockd
