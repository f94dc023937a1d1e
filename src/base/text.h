// What a name may be: the rule for keys and holders, on every transport.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockd {

inline constexpr std::size_t kNameSizeMax = 256;

// Valid UTF-8 without control characters (U+0000 to U+001F, U+007F). Empty text is plain.
// Overlong forms, surrogates and anything past U+10FFFF are not UTF-8.
bool is_plain_text(std::string_view text) noexcept;

// With `instead` for every byte that belongs to no character of UTF-8. Control characters stay.
std::string as_utf8(std::string_view text, std::string_view instead);

// Plain text of 1 to 256 bytes.
bool is_name(std::string_view text) noexcept;

}  // namespace lockd
