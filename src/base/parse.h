// Text to value, strictly: no spaces, no signs, nothing left over. Pure functions, for settings and
// command lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockd {

// true/false, 1/0, yes/no, on/off, in any case.
std::optional<bool> parse_bool(std::string_view text);

// Decimal digits and nothing else, from `min` to `max`.
std::optional<std::uint64_t> parse_whole(std::string_view text, std::uint64_t min,
                                         std::uint64_t max);

}  // namespace lockd
