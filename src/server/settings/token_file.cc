#include "server/settings/token_file.h"

#include <optional>
#include <string_view>
#include <utility>

#include "config/values.h"

namespace lockd {
namespace {

constexpr std::size_t kTokensMax = 2;

// None when a line is no token, or there are too many.
std::vector<std::string> parse_tokens(std::string_view text) {
  std::vector<std::string> tokens;
  text = config::trimmed(text);
  while (true) {
    const std::size_t end = text.find('\n');
    std::optional<std::string> token = config::parse_token(config::trimmed(text.substr(0, end)));
    if (!token || tokens.size() == kTokensMax) return {};
    tokens.push_back(std::move(*token));
    if (end == std::string_view::npos) return tokens;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

bool is_weak_token(std::string_view token) { return token.size() < 16; }

TokenFile read_token_file(const std::string& path, const config::Environment& environment) {
  const config::FileText file = environment.read_file(path);
  if (!file.error.empty()) return {.error = "it cannot be read: " + file.error};
  TokenFile read{.tokens = parse_tokens(file.text), .open_to_others = file.open_to_others};
  if (read.tokens.empty()) {
    read.error =
        "the file must hold one or two lines of text, none of them empty, at most 65536 bytes each";
  }
  return read;
}

}  // namespace lockd
