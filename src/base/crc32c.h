// CRC32C (Castagnoli): finds every error of one, two or three bits, and every burst up to 32, in
// anything the journal writes. By the processor's instruction where there is one.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockd {

// Of "123456789" it is 0xe3069283.
std::uint32_t crc32c(std::string_view bytes) noexcept;

// By tables alone, for machines without the instruction; always the same result.
std::uint32_t crc32c_by_table(std::string_view bytes) noexcept;

}  // namespace lockd
