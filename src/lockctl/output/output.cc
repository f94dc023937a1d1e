#include "lockctl/output/output.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "base/text.h"
#include "lockctl/output/characters.h"
#include "lockctl/output/failure.h"

namespace lockd::cli {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Style Style::of(int descriptor) {
  return Style(::isatty(descriptor) == 1 && variable("NO_COLOR").empty() &&
               variable("TERM") != "dumb");
}

std::string Style::marked(std::string_view code, std::string_view text) const {
  if (!on_) return std::string(text);
  return "\x1b[" + std::string(code) + 'm' + std::string(text) + "\x1b[0m";
}

Output::Output(std::FILE* stream) : stream_(stream), style_(Style::of(::fileno(stream))) {}

void Output::line(std::string_view text) {
  std::string whole(text);
  whole += '\n';
  write(whole);
}

void Output::write(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stream_) == text.size();
  if (!written || std::fflush(stream_) != 0) {
    throw Failure(kExitIo, "cannot write: " + std::generic_category().message(errno));
  }
}

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::string& heading : headings_) {
    const bool is_marked = heading.ends_with('>') || heading.ends_with('?');
    marks_.push_back(is_marked ? heading.back() : '\0');
    if (is_marked) heading.pop_back();
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(headings_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text(const Style& style) const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < headings_.size(); ++column) {
    std::size_t width = is_shown(column) ? columns_of(headings_[column]) : 0;
    for (const auto& row : rows_) width = std::max(width, columns_of(row[column]));
    widths.push_back(width);
  }
  std::string out = style.bold(row_text(headings_, widths)) + '\n';
  for (const auto& row : rows_) out += row_text(row, widths) + '\n';
  return out;
}

bool Table::is_shown(std::size_t column) const {
  return marks_[column] != '?' || std::any_of(rows_.begin(), rows_.end(), [&](const auto& row) {
           return !row[column].empty();
         });
}

std::string Table::row_text(const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& widths) const {
  constexpr std::size_t kGap = 2;
  std::string line;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    if (widths[column] == 0) continue;
    const std::string space(widths[column] - columns_of(cells[column]), ' ');
    if (!line.empty()) line.append(kGap, ' ');
    line += marks_[column] == '>' ? space + cells[column] : cells[column] + space;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

namespace {

// "<U+202E>"
std::string named(char32_t code_point) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "<U+%04X>", static_cast<unsigned>(code_point));
  return text.data();
}

// Calls `take` with every character, and the columns it needs, until it says no.
template <typename Take>
void for_each_character(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::string_view character = text.substr(0, character_size(text));
    if (!take(character, columns_of(code_point_of(character)))) return;
    text.remove_prefix(character.size());
  }
}

std::string two_units(std::uint64_t high, const char* high_unit, std::uint64_t low,
                      const char* low_unit) {
  std::string text = std::to_string(high) + high_unit;
  if (low != 0) text += ' ' + std::to_string(low) + low_unit;
  return text;
}

}  // namespace

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
    const char32_t code_point = code_point_of(character);
    if (is_invisible(code_point)) {
      out += named(code_point);
    } else {
      out += is_plain_text(character) && !c1 ? character : "?";
    }
    rest.remove_prefix(character.size());
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 100;
  return "'" + cut_to(printable(text), kShown) + "'";
}

std::string all_in_quotes(std::span<const std::string> texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + in_quotes(text);
  return all;
}

std::size_t columns_of(std::string_view text) {
  std::size_t sum = 0;
  for_each_character(text, [&](std::string_view, std::size_t columns) {
    sum += columns;
    return true;
  });
  return sum;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::string kept;
  std::size_t left = columns - 1;  // one is the ellipsis'
  for_each_character(text, [&](std::string_view character, std::size_t needed) {
    if (needed > left) return false;
    left -= needed;
    kept += character;
    return true;
  });
  return kept + "…";
}

}  // namespace lockd::cli
