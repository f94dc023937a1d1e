#include "docs/page.h"

#include <algorithm>

namespace lockd {
namespace {

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

// "| a | b |" -> "a", "b".
std::vector<std::string_view> cells_of(std::string_view row) {
  std::vector<std::string_view> cells;
  for (std::size_t at = 1, end; (end = row.find('|', at)) != std::string_view::npos; at = end + 1) {
    cells.push_back(without_blanks(row.substr(at, end - at)));
  }
  return cells;
}

}  // namespace

std::vector<PageLine> lines_of(std::string_view page) {
  std::vector<PageLine> lines;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    lines.push_back({lines.size() + 1, page.substr(0, end)});
    page.remove_prefix(std::min(end + 1, page.size()));
  }
  return lines;
}

std::vector<TableRow> table(std::string_view page, std::string_view header) {
  std::vector<TableRow> rows;
  const auto lines = lines_of(page);
  auto line = std::find_if(lines.begin(), lines.end(),
                           [header](const PageLine& line) { return line.text == header; });
  if (lines.end() - line < 2) return rows;
  for (line += 2; line != lines.end() && line->text.starts_with('|'); ++line) {
    rows.push_back({line->number, cells_of(line->text)});
  }
  return rows;
}

std::vector<std::string_view> code_in(std::string_view cell) {
  std::vector<std::string_view> found;
  for (;;) {
    const std::size_t open = cell.find('`');
    const std::size_t close = open == std::string_view::npos ? open : cell.find('`', open + 1);
    if (close == std::string_view::npos) return found;
    found.push_back(cell.substr(open + 1, close - open - 1));
    cell.remove_prefix(close + 1);
  }
}

}  // namespace lockd
