// Integers as bytes: little endian at a fixed size, or as varints (seven bits a byte, the lowest
// first, the high bit saying that more follow). Only the shortest varint of a number is a varint.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace lockd {

static_assert(std::endian::native == std::endian::little, "store() and load() copy as it is");

inline constexpr std::size_t kVarintSizeMax = 10;

template <std::unsigned_integral T>
void store(char* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <std::unsigned_integral T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Writes at `to`, which has room for kVarintSizeMax, and returns the end of it.
inline char* store_varint(char* to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

// Takes a number from the front of `bytes`. False, and `bytes` as it was, if there is none.
template <std::unsigned_integral T>
bool take(std::string_view& bytes, T* value) {
  if (bytes.size() < sizeof *value) return false;
  *value = load<T>(bytes.data());
  bytes.remove_prefix(sizeof *value);
  return true;
}

inline bool take_varint(std::string_view& bytes, std::uint64_t* value) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size() && i < kVarintSizeMax; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (i == kVarintSizeMax - 1 && byte > 1) return false;  // more than 64 bits
    sum |= std::uint64_t{byte & 0x7fU} << (7 * i);
    if (byte >= 0x80) continue;
    if (byte == 0 && i > 0) return false;  // a shorter one says the same
    *value = sum;
    bytes.remove_prefix(i + 1);
    return true;
  }
  return false;
}

}  // namespace lockd
