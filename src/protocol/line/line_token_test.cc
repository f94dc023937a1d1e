#include "protocol/line/line_token.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace lockd {
namespace {

using namespace std::string_view_literals;

std::string text_of(const LineToken& token) {
  const auto digits = token.format();
  return {digits.data(), digits.size()};
}

const struct {
  LineToken token;
  std::string_view text;
} kTokens[] = {
    {{0, 0}, "00000000000000000000000000000000"},
    {{1, 2}, "00000000000000010000000000000002"},
    {{0x0123456789abcdef, 0xfedcba9876543210}, "0123456789abcdeffedcba9876543210"},
    {{kFenceMax, 0x8000000000000000}, "001fffffffffffff8000000000000000"},
    {{UINT64_MAX, UINT64_MAX}, "ffffffffffffffffffffffffffffffff"},
};

TEST(LineToken, IsTheFenceAndTheSecretInHex) {
  for (const auto& [token, text] : kTokens) {
    EXPECT_EQ(text_of(token), text);
    const auto parsed = LineToken::parse(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(parsed->fence, token.fence) << text;
    EXPECT_EQ(parsed->secret, token.secret) << text;
  }
}

TEST(LineToken, SortsAsTextInTheOrderOfTheFences) {
  const Fence fences[] = {0, 1, 9, 10, 15, 16, 255, 256, 0x7fffffff, 0xffffffff, kFenceMax};
  std::string last;
  for (const Fence fence : fences) {
    const std::string text = text_of({fence, UINT64_MAX - fence});
    EXPECT_LT(last, text);
    last = text;
  }
}

TEST(LineToken, NothingElseIsOne) {
  const struct {
    const char* what;
    std::string_view text;
  } cases[] = {
      {"nothing", ""},
      {"one digit", "0"},
      {"one digit short", "0123456789abcdeffedcba987654321"},
      {"one digit more", "0123456789abcdeffedcba98765432100"},
      {"only the fence", "0123456789abcdef"},
      {"upper case", "0123456789ABCDEFFEDCBA9876543210"},
      {"one upper case letter at the end", "0123456789abcdeffedcba987654321F"},
      {"a prefix", "0x23456789abcdeffedcba9876543210"},
      {"a sign", "+123456789abcdeffedcba9876543210"},
      {"a space before", " 123456789abcdeffedcba9876543210"},
      {"a space after", "0123456789abcdeffedcba987654321 "},
      {"dashes", "01234567-89ab-cdef-fedc-ba987654"},
      {"a nul within", "0123456789abcdef\0edcba9876543210"sv},
      {"a line feed at the end", "0123456789abcdeffedcba987654321\n"},
      {"not ASCII",
       "0123456789abcdef\xc3\xa9"
       "dcba9876543210"},
  };
  for (const auto& c : cases) EXPECT_FALSE(LineToken::parse(c.text).has_value()) << c.what;
}

TEST(LineToken, EveryByteThatIsNoDigitSpoilsItAnywhere) {
  for (std::size_t at = 0; at < LineToken::kSize; ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text(LineToken::kSize, '7');
      text[at] = static_cast<char>(byte);
      const bool digit = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
      EXPECT_EQ(LineToken::parse(text).has_value(), digit) << "byte " << byte << " at " << at;
    }
  }
}

}  // namespace
}  // namespace lockd
