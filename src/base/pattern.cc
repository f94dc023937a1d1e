#include "base/pattern.h"

#include <algorithm>

#include "base/text.h"

namespace lockd {
namespace {

constexpr std::string_view kWildcards = "*>";

bool has_wildcard(std::string_view text) {
  return text.find_first_of(kWildcards) != std::string_view::npos;
}

// A name with no more tokens than there may be.
bool is_path(std::string_view text) noexcept {
  return is_name(text) &&
         static_cast<std::size_t>(std::count(text.begin(), text.end(), '.')) < kTokensMax;
}

}  // namespace

bool is_channel(std::string_view text) noexcept { return is_path(text) && !has_wildcard(text); }

bool is_pattern(std::string_view text) noexcept {
  if (!is_path(text)) return false;
  Tokens tokens(text);
  for (std::string_view token; tokens.next(&token);) {
    if (!has_wildcard(token)) continue;
    if (token.size() != 1) return false;
    if (token == kAnyTokens && !tokens.at_end()) return false;
  }
  return true;
}

bool is_payload(std::string_view channel, std::string_view payload) noexcept {
  constexpr std::size_t kAround = std::string_view("sig  ").size();
  return kAround + channel.size() + payload.size() <= kSignalSizeMax &&
         payload.find_first_not_of(" \t\r\v\f") != std::string_view::npos &&
         payload.find('\n') == std::string_view::npos;
}

}  // namespace lockd
