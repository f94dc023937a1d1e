#include "protocol/http/http_request.h"

#include <algorithm>

namespace lockd {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

enum class Plus { literal, space };

bool decode(std::string_view text, Plus plus, std::string* decoded) {
  decoded->reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus == Plus::space) {
      *decoded += ' ';
    } else if (text[i] != '%') {
      *decoded += text[i];
    } else {
      if (i + 2 >= text.size()) return false;
      const int high = digit_of(text[i + 1]);
      const int low = digit_of(text[i + 2]);
      if (high < 0 || low < 0) return false;
      *decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return true;
}

}  // namespace

bool parse_target(std::string_view text, Target* target) {
  const std::size_t path_end = std::min(text.find('?'), text.size());
  if (!decode(text.substr(0, path_end), Plus::literal, &target->path)) return false;
  std::string_view rest = text.substr(path_end);
  while (!rest.empty()) {
    rest.remove_prefix(1);  // '?' or '&'
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(pair.size());
    if (pair.empty()) continue;
    const std::size_t name_end = std::min(pair.find('='), pair.size());
    auto& [name, value] = target->query.emplace_back();
    if (!decode(pair.substr(0, name_end), Plus::space, &name)) return false;
    if (name_end == pair.size()) continue;
    if (!decode(pair.substr(name_end + 1), Plus::space, &value)) return false;
  }
  return true;
}

}  // namespace lockd
