#include "lockctl/output/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "lockctl/output/failure.h"
#include "lockctl/output/text.h"

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
    right_.push_back(heading.ends_with('>'));
    if (right_.back()) heading.pop_back();
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
    std::size_t width = columns_of(headings_[column]);
    for (const auto& row : rows_) width = std::max(width, columns_of(row[column]));
    widths.push_back(width);
  }
  std::string out = style.bold(row_text(headings_, widths)) + '\n';
  for (const auto& row : rows_) out += row_text(row, widths) + '\n';
  return out;
}

std::string Table::row_text(const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& widths) const {
  constexpr std::size_t kGap = 2;
  std::string line;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    const std::string space(widths[column] - columns_of(cells[column]), ' ');
    if (column != 0) line.append(kGap, ' ');
    line += right_[column] ? space + cells[column] : cells[column] + space;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace lockd::cli
