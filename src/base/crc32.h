// CRC-32 as zlib, gzip and PNG compute it: what clients pick the server of a key by. For errors in
// what we write ourselves there is crc32c.h, which is faster.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockd {

// Of "123456789" it is 0xcbf43926.
std::uint32_t crc32(std::string_view bytes) noexcept;

}  // namespace lockd
