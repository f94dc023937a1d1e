// Values as people are shown them, on a terminal and in JSON. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "config/values.h"
#include "lockd/types.h"

namespace lockd::cli {

using config::trimmed;

// "830ms", "1.5s", "33s", "4m 12s", "3h 5m", "2d 4h".
std::string human(Duration time);
// "1,234,567"
std::string grouped(std::uint64_t number);
// What a terminal shows as it is: control characters, and what is not UTF-8, become '?'.
std::string printable(std::string_view text);
// What is not UTF-8 becomes '?'; all else is left: for JSON.
std::string as_utf8(std::string_view text);
// printable(), in quotes, and not too long: for names that others have chosen.
std::string in_quotes(std::string_view text);

// How many columns it takes on a terminal, if each character takes one.
std::size_t columns_of(std::string_view text);
// Cut to that many columns, with an ellipsis if anything is missing.
std::string cut_to(std::string_view text, std::size_t columns);

}  // namespace lockd::cli
