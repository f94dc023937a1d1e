// What channels and patterns are; for everyone who takes one from a client.
//
// A channel is tokens joined by dots: "orders.eu.42". A pattern is a channel in which `*` may stand
// for exactly one token and `>`, as the last one, for one or more:
//
//   "orders.*.42" and "orders.>" match "orders.eu.42", but "orders.*" does not
//   "orders.>" does not match "orders"
//
// A token may be empty: "a..b" has three, and `*` matches the one in the middle. Pure functions:
// any thread may call them. None recurses, and all take time linear in the text.
#pragma once

#include <cstddef>
#include <string_view>

namespace lockd {

inline constexpr std::string_view kAnyToken = "*";
inline constexpr std::string_view kAnyTokens = ">";

inline constexpr std::size_t kTokensMax = 32;

// Names as keys are, of at most kTokensMax tokens: 1 to 256 bytes of UTF-8 without control
// characters. A channel has no `*` and no `>` anywhere; in a pattern both are whole tokens, and `>`
// the last.
bool is_channel(std::string_view text) noexcept;
bool is_pattern(std::string_view text) noexcept;

// The longest line that clients read, its end aside; a signal must fit whatever transport it came
// by, or one client's publish would break another's connection.
inline constexpr std::size_t kSignalSizeMax = 65'536;

// What may be sent on a channel: not blank, no line feed, and short enough for a line together with
// its channel.
bool is_payload(std::string_view channel, std::string_view payload) noexcept;

// The tokens of a channel or a pattern, from the first. Views into the text.
//
//   for (std::string_view token; tokens.next(&token);) ...
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}

  bool next(std::string_view* token) {
    if (at_end_) return false;
    const std::size_t dot = rest_.find('.');
    *token = rest_.substr(0, dot);
    at_end_ = dot == std::string_view::npos;
    if (!at_end_) rest_.remove_prefix(dot + 1);
    return true;
  }
  bool at_end() const { return at_end_; }

 private:
  std::string_view rest_;
  bool at_end_ = false;  // not the same as nothing left: behind a last dot is an empty token
};

}  // namespace lockd
