// What can be said of a text: whether it is a name, what value it stands for, what word it is near
// to. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockd {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Names: the rule for keys and holders, on every transport.

inline constexpr std::size_t kNameSizeMax = 256;

// Plain text of 1 to 256 bytes.
bool is_name(std::string_view text) noexcept;

// Valid UTF-8 without control characters (U+0000 to U+001F, U+007F). Empty text is plain.
// Overlong forms, surrogates and anything past U+10FFFF are not UTF-8.
bool is_plain_text(std::string_view text) noexcept;
// And no longer than that, in bytes.
inline bool is_plain_text(std::string_view text, std::size_t size_max) noexcept {
  return text.size() <= size_max && is_plain_text(text);
}

// With `instead` for every byte that belongs to no character of UTF-8. Control characters stay.
std::string as_utf8(std::string_view text, std::string_view instead = kReplacementCharacter);

// With each character that a terminal obeys and a person cannot see written as `\u` and four hex
// digits, as in JSON: C1 controls (U+0080 to U+009F), the controls of bidirectional text, and the
// separators U+2028 and U+2029. ASCII stays. Precondition: it is UTF-8.
std::string escape_hidden(std::string text);

// Decimal digits and nothing else, from `min` to `max`: for what programs write. What people write
// is read by config/values.h.
std::optional<std::uint64_t> parse_whole(std::string_view text, std::uint64_t min,
                                         std::uint64_t max);

// How many letters must be added, dropped or changed to make one of the other; `limit` if it is not
// less. For those who ask "did you mean".
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

}  // namespace lockd
