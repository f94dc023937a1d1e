#include "base/pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockd {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> all;
  Tokens tokens(text);
  for (std::string_view token; tokens.next(&token);) all.emplace_back(token);
  EXPECT_TRUE(tokens.at_end());
  return all;
}

std::string repeat(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

using Strings = std::vector<std::string>;

TEST(Tokens, AreWhatIsBetweenDots) {
  EXPECT_EQ(split("a"), (Strings{"a"}));
  EXPECT_EQ(split("a.bc.d"), (Strings{"a", "bc", "d"}));
  EXPECT_EQ(split("*.>"), (Strings{"*", ">"}));
}

TEST(Tokens, MayBeEmpty) {
  EXPECT_EQ(split(""), (Strings{""}));
  EXPECT_EQ(split("."), (Strings{"", ""}));
  EXPECT_EQ(split("a..b"), (Strings{"a", "", "b"}));
  EXPECT_EQ(split(".a."), (Strings{"", "a", ""}));
}

TEST(Pattern, ChannelsHaveNoWildcards) {
  for (const char* text : {"a", "a.b.c", "orders eu.42", ".", "a..b", ".a", "a.", "clé.日本"}) {
    EXPECT_TRUE(is_channel(text)) << text;
    EXPECT_TRUE(is_pattern(text)) << text << ": every channel is a pattern";
  }
  for (const char* text : {"*", ">", "a.*", "a.>", "a*", "a>b", "*a.b"}) {
    EXPECT_FALSE(is_channel(text)) << text;
  }
}

TEST(Pattern, WildcardsAreWholeTokensAndTheLongOneIsLast) {
  for (const char* text :
       {"*", ">", "*.*", "*.>", "a.*", "a.>", "a.*.b", "*.a", ".*", ".>", "*."}) {
    EXPECT_TRUE(is_pattern(text)) << text;
  }
  for (const char* text : {"a*", "*a", "**", "a.b*", "a.*b.c", "a>", ">a", ">>", "*>", ">.a",
                           "a.>.b", ">.>", ">.", "a.>."}) {
    EXPECT_FALSE(is_pattern(text)) << text;
  }
}

TEST(Pattern, AreNamesAsKeysAre) {
  using namespace std::string_view_literals;
  for (std::string_view text : {""sv, "a\n"sv, "a\0b"sv, "a.\x7f"sv, "\t"sv, "a.\xff"sv}) {
    EXPECT_FALSE(is_channel(text));
    EXPECT_FALSE(is_pattern(text));
  }
  EXPECT_TRUE(is_channel(std::string(256, 'a')));
  EXPECT_FALSE(is_channel(std::string(257, 'a')));
}

TEST(Pattern, HaveAtMost32Tokens) {
  for (const std::string_view token : {"a", "", "longer"}) {
    const std::string most = repeat(std::string(token) + ".", 31) + "b";
    EXPECT_TRUE(is_channel(most)) << token;
    EXPECT_TRUE(is_pattern(most)) << token;
    EXPECT_FALSE(is_channel(most + ".")) << token;
    EXPECT_FALSE(is_pattern(most + ".")) << token;
    EXPECT_FALSE(is_pattern(most + ".>")) << token;
  }
  EXPECT_TRUE(is_pattern(repeat("*.", 31) + ">"));
  EXPECT_FALSE(is_pattern(repeat("*.", 32) + ">"));
}

}  // namespace
}  // namespace lockd
