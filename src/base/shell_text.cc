#include "base/shell_text.h"

#include <algorithm>

namespace lockd {

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

std::string zsh_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + '\'';
}

std::string first_sentence(std::string_view help) {
  const std::size_t end = std::min({help.find(". "), help.find("; "), help.size()});
  std::string sentence(help.substr(0, end));
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

}  // namespace lockd
