#include "base/text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace lockd {
namespace {

using namespace std::string_view_literals;

struct Case {
  const char* what;
  std::string_view text;
  bool plain;
};

const Case kCases[] = {
    {"empty", "", true},
    {"letters", "stone-42", true},
    {"a space", "my job", true},
    {"eight printable bytes", "abcdefgh", true},
    {"the last printable", "~~~~~~~~", true},
    {"nul", "a\0b"sv, false},
    {"line feed", "a\nb", false},
    {"tab", "a\tb", false},
    {"escape", "\x1b[31m", false},
    {"the last control before space", "\x1f", false},
    {"delete", "a\x7f", false},
    {"delete within eight",
     "abc\x7f"
     "efgh",
     false},
    {"control within eight",
     "abc\x01"
     "efgh",
     false},
    {"two bytes", "clé", true},
    {"three bytes", "日本", true},
    {"four bytes", "🔒🔒🔒", true},
    {"the last character", "\xf4\x8f\xbf\xbf", true},
    {"past the last character", "\xf4\x90\x80\x80", false},
    {"surrogate", "\xed\xa0\x80", false},
    {"before the surrogates", "\xed\x9f\xbf", true},
    {"overlong slash in two", "\xc0\xaf", false},
    {"overlong in two, C1", "\xc1\xbf", false},
    {"overlong in three", "\xe0\x9f\xbf", false},
    {"the first of three", "\xe0\xa0\x80", true},
    {"overlong in four", "\xf0\x8f\xbf\xbf", false},
    {"the first of four", "\xf0\x90\x80\x80", true},
    {"lone continuation", "\x80", false},
    {"cut after one of two", "abcdefg\xc3", false},
    {"cut after two of three", "\xe6\x97", false},
    {"cut after three of four", "\xf0\x9f\x94", false},
    {"continuation missing", "\xe6\x41\x41", false},
    {"five bytes", "\xf8\x88\x80\x80\x80", false},
    {"not a start byte", "\xff", false},
    {"C1 controls are not ours to refuse", "\xc2\x80", true},
};

TEST(Text, IsUtf8WithoutControls) {
  for (const Case& c : kCases) EXPECT_EQ(is_plain_text(c.text), c.plain) << c.what;
}

TEST(Text, IsTheSameAtEveryOffset) {
  for (const Case& c : kCases) {
    for (std::size_t before = 0; before < 9; ++before) {
      for (std::size_t after = 0; after < 9; ++after) {
        const std::string text =
            std::string(before, 'a') + std::string(c.text) + std::string(after, 'z');
        EXPECT_EQ(is_plain_text(text), c.plain) << c.what << " after " << before;
      }
    }
  }
}

TEST(Text, ANameIsOneTo256Bytes) {
  EXPECT_FALSE(is_name(""));
  EXPECT_TRUE(is_name("k"));
  EXPECT_TRUE(is_name(std::string(256, 'k')));
  EXPECT_FALSE(is_name(std::string(257, 'k')));
  EXPECT_FALSE(is_name("a\nb"));
}

TEST(Text, BecomesUtf8ByteByByte) {
  EXPECT_EQ(as_utf8("a\n\xc3\xa9\xf0\x9f\x92\x8e", "?"), "a\n\xc3\xa9\xf0\x9f\x92\x8e");
  EXPECT_EQ(as_utf8("\xff\xc3\xa9\xe2\x82z\xc0\xaf", "?"), "?\xc3\xa9??z??");
  EXPECT_EQ(as_utf8("\xf0\x9f\x92", "--"), "------");
}

TEST(Text, EverySingleByte) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string eight(8, static_cast<char>(byte));
    const bool plain = byte >= 0x20 && byte < 0x7f;
    EXPECT_EQ(is_plain_text(eight.substr(0, 1)), plain) << byte;
    EXPECT_EQ(is_plain_text(eight), plain) << byte;
  }
}

TEST(EditDistance, CountsLetters) {
  EXPECT_EQ(edit_distance("", "", 9), 0U);
  EXPECT_EQ(edit_distance("port", "port", 9), 0U);
  EXPECT_EQ(edit_distance("prot", "port", 9), 2U);
  EXPECT_EQ(edit_distance("ports", "port", 9), 1U);
  EXPECT_EQ(edit_distance("", "port", 9), 4U);
  EXPECT_EQ(edit_distance("kitten", "sitting", 9), 3U);
}

TEST(EditDistance, GoesNoFurtherThanItsLimit) {
  EXPECT_EQ(edit_distance("kitten", "sitting", 3), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting", 2), 2U);
  EXPECT_EQ(edit_distance("a", "abcdef", 5), 5U);
  EXPECT_EQ(edit_distance("abcdef", "uvwxyz", 4), 4U);
  EXPECT_EQ(edit_distance("abcdef", "bcdefg", 3), 2U);
}

}  // namespace
}  // namespace lockd
