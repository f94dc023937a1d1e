#include "lockctl/values.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>

#include "base/text.h"

namespace lockd::cli {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The size of the character at the front: what its first byte says, or 1 if it is none.
std::size_t character_size(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t size = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  return std::min(size, text.size());
}

std::string two_units(std::uint64_t high, const char* high_unit, std::uint64_t low,
                      const char* low_unit) {
  std::string text = std::to_string(high) + high_unit;
  if (low != 0) text += ' ' + std::to_string(low) + low_unit;
  return text;
}

// One line's words, with breaks between them.
void wrap_line(std::string_view line, std::size_t indent, std::size_t columns, std::string& out) {
  std::size_t column = 0;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::size_t width = columns_of(line.substr(0, end));
    if (column == 0 || column + 1 + width > columns) {
      if (column != 0) out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else {
      out += ' ';
      ++column;
    }
    out += line.substr(0, end);
    column += width;
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  out += '\n';
}

}  // namespace

std::optional<Duration> parse_seconds(std::string_view text) {
  constexpr std::uint64_t kMost = static_cast<std::uint64_t>(kDurationMax.count()) / kNsPerSecond;
  const std::size_t point = std::min(text.find('.'), text.size());
  const bool only_fraction = point == 0 && text.size() > 1;
  const auto whole = only_fraction ? 0 : parse_whole(text.substr(0, point), 0, kMost);
  if (!whole) return std::nullopt;
  std::uint64_t ns = *whole * kNsPerSecond;
  if (point < text.size()) {
    const std::string_view digits = text.substr(point + 1);
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
    if (*whole == kMost || digits.size() > 9) return std::nullopt;
    std::uint64_t unit = kNsPerSecond;
    for (const char digit : digits) {
      unit /= 10;
      ns += static_cast<std::uint64_t>(digit - '0') * unit;
    }
  }
  return Duration(static_cast<std::int64_t>(ns));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const std::size_t start = text.find_first_not_of(kSpaces);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kSpaces) - start + 1);
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = trimmed(text.substr(0, comma));
    if (!part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

std::string human(Duration time) {
  using std::chrono::duration_cast;
  const auto ms =
      static_cast<std::uint64_t>(duration_cast<std::chrono::milliseconds>(time).count());
  if (time < Duration::zero()) return "0s";
  if (time < std::chrono::milliseconds(1) && time > Duration::zero()) return "<1ms";
  if (ms == 0) return "0s";
  if (ms < 1000) return std::to_string(ms) + "ms";
  const std::uint64_t seconds = ms / 1000;
  if (seconds < 10 && ms % 1000 >= 100) {
    return std::to_string(seconds) + '.' + std::to_string(ms % 1000 / 100) + 's';
  }
  if (seconds < 60) return std::to_string(seconds) + 's';
  if (seconds < 3600) return two_units(seconds / 60, "m", seconds % 60, "s");
  if (seconds < 86'400) return two_units(seconds / 3600, "h", seconds % 3600 / 60, "m");
  return two_units(seconds / 86'400, "d", seconds % 86'400 / 3600, "h");
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string as_utf8(std::string_view text) { return lockd::as_utf8(text, "?"); }

std::string printable(std::string_view text) {
  std::string out;
  const std::string valid = as_utf8(text);
  for (std::string_view rest = valid; !rest.empty();) {
    const std::string_view character = rest.substr(0, character_size(rest));
    // Also U+0080 to U+009F, which some terminals obey.
    const bool c1 = character.size() == 2 && character[0] == '\xC2' &&
                    static_cast<unsigned char>(character[1]) < 0xA0;
    out += is_plain_text(character) && !c1 ? character : "?";
    rest.remove_prefix(character.size());
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 100;
  return "'" + cut_to(printable(text), kShown) + "'";
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string cut_to(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::size_t end = 0;
  for (std::size_t taken = 1; taken < columns; ++taken) end += character_size(text.substr(end));
  return std::string(text.substr(0, end)) + "…";
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(' ')) {
      out += std::string(indent, ' ') + std::string(line) + '\n';
    } else {
      wrap_line(line, indent, columns, out);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace lockd::cli
