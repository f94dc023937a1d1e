#include "base/hash.h"

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <string>

namespace lockd {
namespace {

// Bytes 0, 1, 2 and so on, as in the published examples.
std::string counted_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  return bytes;
}

HashKey counted_key() {
  HashKey key;
  std::memcpy(&key, counted_bytes(sizeof key).data(), sizeof key);
  return key;
}

// The library's own, in as many rounds as hash_bytes() has.
std::uint64_t openssl_hash(std::string_view bytes, const HashKey& key) {
  const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> mac(
      EVP_MAC_fetch(nullptr, "SIPHASH", nullptr), &EVP_MAC_free);
  const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(
      EVP_MAC_CTX_new(mac.get()), &EVP_MAC_CTX_free);
  unsigned size = 8;
  unsigned rounds_per_word = 1;
  unsigned rounds_at_end = 3;
  const std::array parameters = {
      OSSL_PARAM_construct_uint(OSSL_MAC_PARAM_SIZE, &size),
      OSSL_PARAM_construct_uint(OSSL_MAC_PARAM_C_ROUNDS, &rounds_per_word),
      OSSL_PARAM_construct_uint(OSSL_MAC_PARAM_D_ROUNDS, &rounds_at_end),
      OSSL_PARAM_construct_end(),
  };
  std::uint64_t hash = 0;
  std::size_t written = 0;
  EXPECT_EQ(EVP_MAC_init(context.get(), reinterpret_cast<const unsigned char*>(&key), sizeof key,
                         parameters.data()),
            1);
  EXPECT_EQ(EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(bytes.data()),
                           bytes.size()),
            1);
  EXPECT_EQ(
      EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(&hash), &written, sizeof hash),
      1);
  return hash;
}

// Of the messages of 0 to 15 bytes in the reference implementation's vectors.h, read as words.
TEST(Hash, IsSipHashAsPublished) {
  constexpr std::uint64_t kPublished[] = {
      0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
      0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
      0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
      0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5,
  };
  for (std::size_t size = 0; size < std::size(kPublished); ++size) {
    EXPECT_EQ((detail::sip_hash<2, 4>(counted_bytes(size), counted_key())), kPublished[size])
        << size;
  }
}

TEST(Hash, IsWhatOpensslComputesOfEverySize) {
  for (std::size_t size = 0; size <= 300; ++size) {
    const std::string bytes = counted_bytes(size);
    EXPECT_EQ(hash_bytes(bytes, counted_key()), openssl_hash(bytes, counted_key())) << size;
  }
}

TEST(Hash, DependsOnEveryByteTheLengthAndTheKey) {
  std::set<std::uint64_t> seen;
  std::size_t hashed = 0;
  for (std::size_t size = 0; size <= 64; ++size) {
    const std::string zeros(size, '\0');
    seen.insert(hash_bytes(zeros, HashKey::of_seed(1)));
    seen.insert(hash_bytes(zeros, HashKey::of_seed(2)));
    hashed += 2;
    for (std::size_t i = 0; i < size; ++i) {
      std::string changed = zeros;
      changed[i] = 1;
      seen.insert(hash_bytes(changed, HashKey::of_seed(1)));
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
      flipped += std::popcount(hash_bytes(key, HashKey::of_seed(7)) ^
                               hash_bytes(changed, HashKey::of_seed(7)));
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
    const std::uint64_t hash = hash_bytes("key-" + std::to_string(i), HashKey::of_seed(42));
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
