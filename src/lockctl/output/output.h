// What lockctl prints on standard output: lines, tables, colours where there is a terminal, and how
// values look in them.
//
// Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/values.h"
#include "lockd/types.h"

namespace lockd::cli {

// Whether to mark text up, and how. On a terminal that is not a dumb one, unless NO_COLOR is set.
class Style {
 public:
  static Style of(int descriptor);
  static Style plain() { return Style(false); }
  static Style coloured() { return Style(true); }

  bool is_plain() const { return !on_; }
  std::string bold(std::string_view text) const { return marked("1", text); }
  std::string dim(std::string_view text) const { return marked("2", text); }
  std::string red(std::string_view text) const { return marked("31", text); }
  std::string green(std::string_view text) const { return marked("32", text); }
  std::string yellow(std::string_view text) const { return marked("33", text); }
  std::string reversed(std::string_view text) const { return marked("7", text); }

 private:
  explicit Style(bool on) : on_(on) {}
  std::string marked(std::string_view code, std::string_view text) const;

  bool on_;
};

class Output {
 public:
  explicit Output(std::FILE* stream);

  const Style& style() const { return style_; }
  // One line, and at once: who reads a stream waits for it. Throws Failure when nobody takes it.
  void line(std::string_view text);
  // As it is.
  void write(std::string_view text);

 private:
  std::FILE* const stream_;
  const Style style_;
};

// Rows under a heading, each column as wide as its widest cell.
//
//   Table table({"KEY", "WAITERS>", "NOTE?"});
//
// A column whose heading ends with > is aligned right; one whose heading ends with ? is left out
// when nothing is in it.
//
//   table.add({"my-job", "3"});
//   output.write(table.text(output.style()));
class Table {
 public:
  explicit Table(std::vector<std::string> headings);

  // Cells are made printable.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  std::string text(const Style& style) const;

 private:
  bool is_shown(std::size_t column) const;
  std::string row_text(const std::vector<std::string>& cells,
                       const std::vector<std::size_t>& widths) const;

  std::vector<std::string> headings_;
  std::vector<char> marks_;  // how each heading ended: '>', '?' or 0
  std::vector<std::vector<std::string>> rows_;
};

// --- values as people are shown them, on a terminal and in JSON: pure functions ---

using config::trimmed;

// "830ms", "1.5s", "33s", "4m 12s", "3h 5m", "2d 4h".
std::string human(Duration time);
// "1,234,567"
std::string grouped(std::uint64_t number);
// What a terminal shows as it is: control characters, and what is not UTF-8, become '?'; what would
// not be seen is named: "a<U+202E>b".
std::string printable(std::string_view text);
// What is not UTF-8 becomes '?'; all else is left: for JSON.
std::string as_utf8(std::string_view text);
// printable(), in quotes, and not too long: for names that others have chosen.
std::string in_quotes(std::string_view text);
// "'a', 'b'"
std::string all_in_quotes(std::span<const std::string> texts);

// How many columns it takes on a terminal. Precondition: it is printable.
std::size_t columns_of(std::string_view text);
// Cut to that many columns, with an ellipsis if anything is missing.
std::string cut_to(std::string_view text, std::size_t columns);

}  // namespace lockd::cli
