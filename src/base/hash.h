// SipHash-1-3: a keyed hash of byte strings, for tables whose keys clients choose.
//
// Who does not know the key cannot find inputs that collide, nor tell the place of one from the
// places of others. Every output bit depends on every input bit, so both ends of the result may be
// used: the engine takes the low bits for the shard, the key index the high bits for the bucket.
// Not for storage: it may change.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lockd {

// A secret that hashes depend on.
struct HashKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  static HashKey random();
  // The same for the same seed: for tests, which are to be repeated.
  static HashKey of_seed(std::uint64_t seed);

  // A key of its own for each address: one table then serves many owners.
  HashKey at(const void* address) const {
    return {low ^ reinterpret_cast<std::uintptr_t>(address), high};
  }
};

namespace detail {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

inline std::uint64_t load8(const char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

inline std::uint64_t load4(const char* p) {
  std::uint32_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// The bytes that no whole word holds, 0 to 7 of them. Read by words, which overlap.
inline std::uint64_t load_rest(std::string_view bytes) {
  const std::size_t left = bytes.size() % 8;
  const char* const end = bytes.data() + bytes.size();
  const char* const p = end - left;
  const auto byte = [&](std::size_t at) {
    return std::uint64_t{static_cast<unsigned char>(p[at])} << 8 * at;
  };
  if (left == 0) return 0;
  if (bytes.size() > 8) return load8(end - 8) >> (64 - 8 * left);
  if (left >= 4) return load4(p) | load4(end - 4) << 8 * (left - 4);
  return byte(0) | byte(left / 2) | byte(left - 1);
}

struct SipState {
  std::uint64_t a;
  std::uint64_t b;
  std::uint64_t c;
  std::uint64_t d;

  void mix(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      a += b;
      c += d;
      b = std::rotl(b, 13) ^ a;
      d = std::rotl(d, 16) ^ c;
      a = std::rotl(a, 32) + d;
      c += b;
      d = std::rotl(d, 21) ^ a;
      b = std::rotl(b, 17) ^ c;
      c = std::rotl(c, 32);
    }
  }
};

// As published by Aumasson and Bernstein, with so many rounds for each word and at the end.
template <int kRoundsPerWord, int kRoundsAtEnd>
std::uint64_t sip_hash(std::string_view bytes, const HashKey& key) noexcept {
  SipState state{key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d,
                 key.low ^ 0x6c7967656e657261, key.high ^ 0x7465646279746573};
  const auto take_in = [&](std::uint64_t word) {
    state.d ^= word;
    state.mix(kRoundsPerWord);
    state.a ^= word;
  };
  const char* p = bytes.data();
  for (std::size_t words = bytes.size() / 8; words > 0; --words, p += 8) take_in(load8(p));
  take_in(load_rest(bytes) | std::uint64_t{bytes.size()} << 56);
  state.c ^= 0xff;
  state.mix(kRoundsAtEnd);
  return state.a ^ state.b ^ state.c ^ state.d;
}

}  // namespace detail

inline std::uint64_t hash_bytes(std::string_view bytes, const HashKey& key) noexcept {
  return detail::sip_hash<1, 3>(bytes, key);
}

}  // namespace lockd
