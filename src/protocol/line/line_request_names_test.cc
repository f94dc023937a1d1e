// What a name may be: keys, channels, patterns, groups; and what a signal may carry.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "protocol/line/line_request.h"

namespace lockd {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kToken = "00000000000000070123456789abcdef";

ParsedRequest parse(std::string_view command, std::string_view key, std::string_view argument) {
  return parse_request({command, key, argument}, Phase::open);
}

Violation violation(std::string_view command, std::string_view key, std::string_view argument) {
  return parse(command, key, argument).violation;
}

// A valid argument for every command whose key counts.
constexpr std::string_view kKeyed[][2] = {
    {"l", "1"},     {"r", kToken},    {"n", kToken},   {"e", ""},   {"w", "1"},
    {"sl", "1 1"},  {"sr", kToken},   {"sn", kToken},  {"se", "1"}, {"sw", "1"},
    {"listen", ""}, {"unlisten", ""}, {"signal", "p"},
};

TEST(LineRequestNames, KeysAreUtf8WithoutControls) {
  const struct {
    const char* what;
    std::string_view key;
    bool good;
  } cases[] = {
      {"a letter", "k", true},
      {"spaces", " my job ", true},
      {"one space", " ", true},
      {"punctuation", "orders/42:{a}-\"b\"\\", true},
      {"two bytes", "clé", true},
      {"three bytes", "日本", true},
      {"four bytes", "🔒", true},
      {"byte order mark", "\xef\xbb\xbfk", true},
      {"right to left", "\u202ek", true},
      {"zero width", "\u200bk", true},
      {"no-break space", "\u00a0", true},
      {"C1 control", "\xc2\x80", true},
      {"the first of three bytes", "\xe0\xa0\x80", true},
      {"the last before the surrogates", "\xed\x9f\xbf", true},
      {"the first behind the surrogates", "\xee\x80\x80", true},
      {"not a character, but encoded", "\xef\xbf\xbf", true},
      {"the last of all", "\xf4\x8f\xbf\xbf", true},
      {"empty", "", false},
      {"nul", "\0"sv, false},
      {"nul within", "a\0b"sv, false},
      {"tab", "a\tb", false},
      {"carriage return within", "a\rb", false},
      {"escape", "\x1b[31m", false},
      {"the last control", "\x1f", false},
      {"delete", "a\x7f", false},
      {"lone continuation", "\x80", false},
      {"lone continuation at the end", "a\xbf", false},
      {"two continuations", "\x80\xbf", false},
      {"cut after one of two", "a\xc3", false},
      {"cut after one of three", "\xe6", false},
      {"cut after two of three", "\xe6\x97", false},
      {"cut after three of four", "\xf0\x9f\x94", false},
      {"continuation missing", "\xc3(", false},
      {"second continuation missing", "\xe2\x82(", false},
      {"third continuation missing", "\xf0\x9f\x94(", false},
      {"overlong nul", "\xc0\x80", false},
      {"overlong slash", "\xc0\xaf", false},
      {"overlong in two", "\xc1\xbf", false},
      {"overlong slash in three", "\xe0\x80\xaf", false},
      {"overlong in three", "\xe0\x9f\xbf", false},
      {"overlong in four", "\xf0\x80\x80\xaf", false},
      {"the last overlong in four", "\xf0\x8f\xbf\xbf", false},
      {"the first surrogate", "\xed\xa0\x80", false},
      {"the last surrogate", "\xed\xbf\xbf", false},
      {"a surrogate pair", "\xed\xa0\xbd\xed\xb2\xa9", false},
      {"past U+10FFFF", "\xf4\x90\x80\x80", false},
      {"far past U+10FFFF", "\xf7\xbf\xbf\xbf", false},
      {"five bytes", "\xf8\x88\x80\x80\x80", false},
      {"six bytes", "\xfc\x84\x80\x80\x80\x80", false},
      {"FE", "\xfe", false},
      {"FF", "\xff", false},
      {"Latin-1", "cl\xe9", false},
      {"UTF-16", "\xff\xfek\0"sv, false},
  };
  for (const auto& c : cases) {
    for (const auto& [command, argument] : kKeyed) {
      const auto parsed = parse(command, c.key, argument);
      EXPECT_EQ(parsed.violation, c.good ? Violation::none : Violation::bad_key)
          << c.what << " for " << command;
      if (!parsed) continue;
      EXPECT_EQ(parsed.request.key, c.key) << "never normalised";
    }
  }
  const std::string longest(kKeySizeMax, 'k');
  EXPECT_EQ(parse("l", longest, "1").request.key, longest);
}

TEST(LineRequestNames, WildcardsArePartsOfPatternsAndNeverOfChannels) {
  const struct {
    std::string_view key;
    bool pattern, channel;
  } cases[] = {
      {"a", true, true},        {"a.b.c", true, true},    {"a b.c", true, true},
      {".", true, true},        {"..", true, true},       {"a.", true, true},
      {".a", true, true},       {"a..b", true, true},     {"日.本", true, true},
      {"*", true, false},       {">", true, false},       {"*.*.*", true, false},
      {"a.*", true, false},     {"*.a", true, false},     {"a.*.b", true, false},
      {"a.>", true, false},     {"*.>", true, false},     {".>", true, false},
      {"..*", true, false},     {"a*", false, false},     {"*a", false, false},
      {"**", false, false},     {">>", false, false},     {"*>", false, false},
      {"a.b*.c", false, false}, {"a.>b", false, false},   {"a>", false, false},
      {"a.>.b", false, false},  {">.a", false, false},    {">.", false, false},
      {">.>", false, false},    {"a.>.", false, false},   {"* ", false, false},
      {" >", false, false},     {"a.* .b", false, false}, {"日*.a", false, false},
  };
  for (const auto& c : cases) {
    const Violation as_pattern = c.pattern ? Violation::none : Violation::bad_key;
    EXPECT_EQ(violation("listen", c.key, ""), as_pattern) << c.key;
    EXPECT_EQ(violation("unlisten", c.key, ""), as_pattern) << c.key;
    EXPECT_EQ(violation("signal", c.key, "p"), c.channel ? Violation::none : Violation::bad_key)
        << c.key;
    EXPECT_EQ(violation("l", c.key, "1"), Violation::none) << "a lock may have any name";
  }
}

TEST(LineRequestNames, AGroupIsTrimmedAndMayContainSpaces) {
  const struct {
    std::string_view argument;
    std::string_view group;
    bool good = true;
  } cases[] = {
      {"", ""},
      {" \t ", ""},
      {"workers", "workers"},
      {" \tgroup a \t", "group a"},
      {"a  b", "a  b"},
      {"日本", "日本"},
      {"*", "*"},
      {"a\tb", "", false},
      {"\xff", "", false},
      {"a\rb", "", false},
      {"\0"sv, "", false},
  };
  for (const auto& c : cases) {
    for (const char* command : {"listen", "unlisten"}) {
      const auto parsed = parse(command, "a.>", c.argument);
      EXPECT_EQ(parsed.violation, c.good ? Violation::none : Violation::bad_key) << c.argument;
      if (!parsed) continue;
      EXPECT_EQ(parsed.request.key, "a.>");
      EXPECT_EQ(parsed.request.text, c.group);
    }
  }
}

TEST(LineRequestNames, APayloadIsUntouchedAndNotBlank) {
  for (const std::string_view payload :
       {"p"sv, " two  words\t"sv, "\xff\x01\0"sv, "\r x"sv, "*"sv}) {
    const auto parsed = parse("signal", "a.b", payload);
    ASSERT_TRUE(parsed) << payload;
    EXPECT_EQ(parsed.request.command, Command::signal);
    EXPECT_EQ(parsed.request.key, "a.b");
    EXPECT_EQ(parsed.request.text, payload);
  }
  for (const std::string_view payload : {""sv, " "sv, "\t"sv, " \t \t "sv, "\r "sv, "\v\f"sv}) {
    EXPECT_EQ(violation("signal", "a.b", payload), Violation::bad_arguments);
  }
}

TEST(LineRequestNames, ASignalsLineIsAsLongAsALineMayBe) {
  for (const std::size_t channel_size : {1u, 3u, 255u, 256u}) {
    const std::string channel(channel_size, 'c');
    const std::size_t most = 65'536 - 5 - channel_size;
    EXPECT_EQ(violation("signal", channel, std::string(most, 'p')), Violation::none);
    EXPECT_EQ(violation("signal", channel, std::string(most + 1, 'p')), Violation::bad_arguments);
    EXPECT_EQ(violation("signal", channel, std::string(65'536, 'p')), Violation::bad_arguments);
  }
}

}  // namespace
}  // namespace lockd
