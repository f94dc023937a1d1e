#include "protocol/line/line_token.h"

namespace lockd {
namespace {

constexpr std::size_t kDigits = 16;  // of one number
constexpr char kHex[] = "0123456789abcdef";
constexpr std::uint8_t kNoDigit = 0xff;

// A table, because a token's digits are random: a branch on each would often be guessed wrong.
constexpr auto kDigitValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::uint8_t i = 0; i < 16; ++i) values[static_cast<unsigned char>(kHex[i])] = i;
  return values;
}();

void format_number(std::uint64_t number, char* digits) {
  for (std::size_t i = kDigits; i > 0; --i, number >>= 4) digits[i - 1] = kHex[number & 0xf];
}

bool parse_number(std::string_view digits, std::uint64_t* number) {
  std::uint64_t sum = 0;
  unsigned seen = 0;
  for (const char c : digits) {
    const std::uint8_t value = kDigitValues[static_cast<unsigned char>(c)];
    seen |= value;
    sum = sum << 4 | value;
  }
  *number = sum;
  return seen < 16;  // not one kNoDigit
}

}  // namespace

std::array<char, LineToken::kSize> LineToken::format() const noexcept {
  std::array<char, kSize> text;
  format_number(fence, text.data());
  format_number(secret, text.data() + kDigits);
  return text;
}

std::optional<LineToken> LineToken::parse(std::string_view text) noexcept {
  LineToken token;
  if (text.size() != kSize || !parse_number(text.substr(0, kDigits), &token.fence) ||
      !parse_number(text.substr(kDigits), &token.secret)) {
    return std::nullopt;
  }
  return token;
}

}  // namespace lockd
