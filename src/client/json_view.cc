#include "client/json_view.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace lockd::client {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Reads values off the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool is_done() {
    skip_blanks();
    return rest_.empty();
  }
  bool take(char wanted) {
    skip_blanks();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // The next value as it is written. Nothing, and the end of all reading, when there is none.
  std::optional<std::string_view> take_value(int depth) {
    skip_blanks();
    const std::string_view before = rest_;
    if (!skip_value(depth)) return std::nullopt;
    return before.substr(0, before.size() - rest_.size());
  }

 private:
  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
  }

  bool skip_value(int depth) {
    if (depth == 0 || rest_.empty()) return false;
    switch (rest_.front()) {
      case '"': return skip_string();
      case '{': return skip_elements('}', depth - 1, /*named=*/true);
      case '[': return skip_elements(']', depth - 1, /*named=*/false);
      default: return skip_word();
    }
  }

  bool skip_string() {
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        return true;
      }
    }
    return false;
  }

  bool skip_elements(char end, int depth, bool named) {
    rest_.remove_prefix(1);
    if (take(end)) return true;
    do {
      skip_blanks();
      if (named && (!rest_.starts_with('"') || !skip_string() || !take(':'))) return false;
      skip_blanks();
      if (!skip_value(depth)) return false;
    } while (take(','));
    return take(end);
  }

  // A number, true, false or null.
  bool skip_word() {
    constexpr std::string_view kOfWords = "+-.0123456789Eaeflnrstu";
    const std::size_t size = std::min(rest_.find_first_not_of(kOfWords), rest_.size());
    rest_.remove_prefix(size);
    return size > 0;
  }

  std::string_view rest_;
};

char unescaped(char c) {
  switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'b':
    case 'f': return ' ';
    default: return c;
  }
}

}  // namespace

std::optional<JsonView> JsonView::parse(std::string_view text) {
  Scanner scanner(text);
  const auto value = scanner.take_value(kDepthMax);
  if (!value || !scanner.is_done()) return std::nullopt;
  return JsonView(*value);
}

JsonView JsonView::member(std::string_view name) const {
  Scanner scanner(text_);
  if (!scanner.take('{')) return {};
  do {
    const auto found = scanner.take_value(kDepthMax);
    if (!found || !scanner.take(':')) return {};
    const auto value = scanner.take_value(kDepthMax);
    if (found->substr(1, found->size() - 2) == name) return JsonView(*value);
  } while (scanner.take(','));
  return {};
}

std::vector<JsonView> JsonView::elements() const {
  std::vector<JsonView> all;
  Scanner scanner(text_);
  if (!scanner.take('[')) return all;
  do {
    const auto value = scanner.take_value(kDepthMax);
    if (value) all.push_back(JsonView(*value));
  } while (scanner.take(','));
  return all;
}

std::optional<std::uint64_t> JsonView::number() const {
  std::uint64_t number = 0;
  const char* const end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(text_.data(), end, number);
  if (text_.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::optional<std::string> JsonView::text() const {
  constexpr std::size_t kDigits = 4;
  if (!text_.starts_with('"')) return std::nullopt;
  std::string plain;
  for (std::size_t i = 1; i + 1 < text_.size(); ++i) {
    if (text_[i] != '\\') {
      plain += text_[i];
    } else if (text_[++i] == 'u') {
      plain += '?';
      i += kDigits;
    } else {
      plain += unescaped(text_[i]);
    }
  }
  return plain;
}

}  // namespace lockd::client
