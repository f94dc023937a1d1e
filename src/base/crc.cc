#include "base/crc.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace lockd {
namespace {

// Reflected.
constexpr std::uint32_t kPolynomial = 0xedb88320;
constexpr std::uint32_t kCastagnoli = 0x82f63b78;

using Table = std::array<std::uint32_t, 256>;

constexpr Table make_table(std::uint32_t polynomial) {
  Table table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    table[byte] = crc;
  }
  return table;
}

// tables[i][b]: the effect of byte b with i zero bytes behind it, so that eight bytes are taken at
// once.
constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables{make_table(kCastagnoli)};
  for (std::size_t i = 1; i < 8; ++i) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[i - 1][byte];
      tables[i][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Table kTable = make_table(kPolynomial);
constexpr std::array<Table, 8> kTables = make_tables();

std::uint32_t extend_by_table(std::uint32_t crc, const char* p, std::size_t size) noexcept {
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(p[i]); };
  for (; size >= 8; p += 8, size -= 8) {
    const std::uint32_t low =
        crc ^ (byte_at(0) | std::uint32_t{byte_at(1)} << 8 | std::uint32_t{byte_at(2)} << 16 |
               std::uint32_t{byte_at(3)} << 24);
    crc = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][byte_at(4)] ^ kTables[2][byte_at(5)] ^
          kTables[1][byte_at(6)] ^ kTables[0][byte_at(7)];
  }
  for (; size > 0; ++p, --size) crc = crc >> 8 ^ kTables[0][(crc ^ byte_at(0)) & 0xff];
  return crc;
}

using Extend = std::uint32_t (*)(std::uint32_t, const char*, std::size_t) noexcept;

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) std::uint32_t extend_by_instruction(std::uint32_t crc,
                                                                      const char* p,
                                                                      std::size_t size) noexcept {
  std::uint64_t wide = crc;
  for (; size >= 8; p += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; size > 0; ++p, --size) crc = _mm_crc32_u8(crc, static_cast<unsigned char>(*p));
  return crc;
}

Extend choose() {
  return __builtin_cpu_supports("sse4.2") ? extend_by_instruction : extend_by_table;
}

#elif defined(__aarch64__)

__attribute__((target("+crc"))) std::uint32_t extend_by_instruction(std::uint32_t crc,
                                                                    const char* p,
                                                                    std::size_t size) noexcept {
  for (; size >= 8; p += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    crc = __crc32cd(crc, word);
  }
  for (; size > 0; ++p, --size) crc = __crc32cb(crc, static_cast<unsigned char>(*p));
  return crc;
}

Extend choose() {
  constexpr unsigned long kHasCrc = 1UL << 7;  // HWCAP_CRC32
  return (getauxval(AT_HWCAP) & kHasCrc) != 0 ? extend_by_instruction : extend_by_table;
}

#else

Extend choose() { return extend_by_table; }

#endif

}  // namespace

std::uint32_t crc32(std::string_view bytes) noexcept {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  }
  return ~crc;
}

std::uint32_t crc32c(std::string_view bytes) noexcept {
  static const Extend extend = choose();
  return ~extend(~std::uint32_t{0}, bytes.data(), bytes.size());
}

std::uint32_t crc32c_by_table(std::string_view bytes) noexcept {
  return ~extend_by_table(~std::uint32_t{0}, bytes.data(), bytes.size());
}

}  // namespace lockd
