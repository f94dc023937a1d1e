#include "base/hash.h"

#include <cstring>

namespace lockd {
namespace {

// Odd constants with about as many ones as zeros: the digits of pi, e and the square root of 2.
constexpr std::uint64_t kPi = 0x243f6a8885a308d3;
constexpr std::uint64_t kE = 0xb7e151628aed2a6b;
constexpr std::uint64_t kRoot2 = 0x6a09e667f3bcc909;

// The 128-bit product folded onto itself: one multiplication mixes every bit of both words.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t load8(const char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

std::uint64_t load4(const char* p) {
  std::uint32_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

}  // namespace

std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) noexcept {
  const char* p = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t state = fold(seed ^ kPi, bytes.size() ^ kE);
  while (left > 16) {
    state = fold(load8(p) ^ kRoot2, load8(p + 8) ^ state);
    p += 16;
    left -= 16;
  }
  // The last 1 to 16 bytes as two words, which overlap unless there are exactly 8 or 16.
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  if (left >= 8) {
    a = load8(p);
    b = load8(p + left - 8);
  } else if (left >= 4) {
    a = load4(p);
    b = load4(p + left - 4);
  } else if (left > 0) {
    a = static_cast<unsigned char>(p[0]);
    b = static_cast<std::uint64_t>(static_cast<unsigned char>(p[left / 2])) << 8 |
        static_cast<unsigned char>(p[left - 1]);
  }
  return fold(fold(a ^ kRoot2, b ^ state), kE);
}

}  // namespace lockd
