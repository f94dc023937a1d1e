// Text to values and back: what people type, and what they are shown. Pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "lockd/types.h"

namespace lockd::cli {

// "5", "0.5", ".5": seconds, exact to the nanosecond, at most 9,223,372,036.
std::optional<Duration> parse_seconds(std::string_view text);

std::string_view trimmed(std::string_view text);
// The parts between commas, trimmed; empty ones are left out.
std::vector<std::string> split_list(std::string_view text);

// "830ms", "1.5s", "33s", "4m 12s", "3h 5m", "2d 4h".
std::string human(Duration time);
// "1,234,567"
std::string grouped(std::uint64_t number);
// What a terminal shows as it is: control characters, and what is not UTF-8, become '?'.
std::string printable(std::string_view text);
// What is not UTF-8 becomes '?'; all else is left: for JSON.
std::string as_utf8(std::string_view text);
// printable(), in quotes, and not too long: for messages.
std::string in_quotes(std::string_view text);

// How many columns it takes on a terminal, if each character takes one.
std::size_t columns_of(std::string_view text);
// Cut to that many columns, with an ellipsis if anything is missing.
std::string cut_to(std::string_view text, std::size_t columns);

// `text` in lines of at most `columns`, each after `indent` spaces. A line that begins with spaces
// is left as it is.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns = 80);

}  // namespace lockd::cli
