// Checksums: CRC-32, which clients pick the server of a key by, and CRC32C, which guards what the
// journal writes. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockd {

// As zlib, gzip and PNG compute it. Of "123456789" it is 0xcbf43926.
std::uint32_t crc32(std::string_view bytes) noexcept;

// Castagnoli's: finds every error of one, two or three bits, and every burst up to 32. By the
// processor's instruction where there is one. Of "123456789" it is 0xe3069283.
std::uint32_t crc32c(std::string_view bytes) noexcept;

// By tables alone, for machines without the instruction; always the same result.
std::uint32_t crc32c_by_table(std::string_view bytes) noexcept;

}  // namespace lockd
