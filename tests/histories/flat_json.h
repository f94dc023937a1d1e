// Reads a JSON object whose values are strings, numbers and words, without copying: two million of
// them are read in about a second.
#pragma once

#include <string_view>

namespace lockd::histories {

// A string without its quotes, a number, or true, false, null. Escapes are not taken: the names in
// a history have none.
struct FlatValue {
  std::string_view text;
};

// Calls `member(name, value)` for each. False if `text` is no such object.
template <typename Member>
bool read_flat_json(std::string_view text, Member member) {
  std::size_t at = 0;
  const auto skip = [&] {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r')) ++at;
  };
  const auto take = [&](char c) {
    skip();
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  };
  const auto take_string = [&](std::string_view* string) {
    if (!take('"')) return false;
    const std::size_t end = text.find_first_of("\"\\", at);
    if (end == std::string_view::npos || text[end] == '\\') return false;
    *string = text.substr(at, end - at);
    at = end + 1;
    return true;
  };
  const auto take_value = [&](std::string_view* value) {
    skip();
    if (at < text.size() && text[at] == '"') return take_string(value);
    const std::size_t end = text.find_first_of(",} \t", at);
    if (end == std::string_view::npos || end == at) return false;
    *value = text.substr(at, end - at);
    at = end;
    return true;
  };

  if (!take('{')) return false;
  if (take('}')) return true;
  do {
    std::string_view name;
    FlatValue value;
    if (!take_string(&name) || !take(':') || !take_value(&value.text)) return false;
    member(name, value);
  } while (take(','));
  if (!take('}')) return false;
  skip();
  return at == text.size();
}

}  // namespace lockd::histories
