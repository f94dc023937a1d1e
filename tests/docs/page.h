// A page of the documentation, as its tests read it: lines, tables and the code in them.
//
// Everything keeps the number of its line on the page, for complaints that an editor can jump to.
// Plain values and functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockd {

struct PageLine {
  std::size_t number = 0;  // from 1
  std::string_view text;   // within the page
};

std::vector<PageLine> lines_of(std::string_view page);

struct TableRow {
  std::size_t line = 0;
  std::vector<std::string_view> cells;  // without the blanks around them
};

// The rows of the table whose first row is `header`, as written; the header and the rule under it
// are not among them. Empty when there is none.
std::vector<TableRow> table(std::string_view page, std::string_view header);

// What stands between backticks.
std::vector<std::string_view> code_in(std::string_view cell);

}  // namespace lockd
