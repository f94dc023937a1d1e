#include "lockctl/output/output.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lockd::cli {
namespace {

using namespace std::chrono_literals;

TEST(Text, TimesForPeople) {
  EXPECT_EQ(human(0s), "0s");
  EXPECT_EQ(human(10us), "<1ms");
  EXPECT_EQ(human(830ms), "830ms");
  EXPECT_EQ(human(1500ms), "1.5s");
  EXPECT_EQ(human(33s), "33s");
  EXPECT_EQ(human(252s), "4m 12s");
  EXPECT_EQ(human(3h + 5min), "3h 5m");
  EXPECT_EQ(human(52h), "2d 4h");
  EXPECT_EQ(human(-1s), "0s");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(12), "12");
}

TEST(Text, NothingReachesATerminalThatItWouldObey) {
  EXPECT_EQ(printable("clé-日本"), "clé-日本");
  EXPECT_EQ(printable("a\x1b[31mb\n\x7f"), "a?[31mb??");
  EXPECT_EQ(printable("\xff\xc3"), "??");
  EXPECT_EQ(printable("\xc2\x9b"), "?");  // U+009B is what ESC [ is
  EXPECT_EQ(as_utf8("a\x1b\t\xc2\x9b\xff"), "a\x1b\t\xc2\x9b?");
  EXPECT_EQ(in_quotes("x"), "'x'");
}

TEST(Text, TextIsCutByCharacters) {
  EXPECT_EQ(cut_to("日本語", 6), "日本語");
  EXPECT_EQ(cut_to("日本語", 5), "日本…");
  EXPECT_EQ(cut_to("日本語", 4), "日…");
  EXPECT_EQ(cut_to("日本語", 2), "…");
  EXPECT_EQ(cut_to("abc", 0), "");
  EXPECT_EQ(cut_to("cle\u0301s", 3), "cl…");
}

TEST(Text, CharactersAreAsWideAsATerminalShowsThem) {
  EXPECT_EQ(columns_of("clé"), 3U);
  EXPECT_EQ(columns_of("cle\u0301"), 3U) << "an accent of its own";
  EXPECT_EQ(columns_of("日本"), 4U);
  EXPECT_EQ(columns_of("ｗ"), 2U) << "a wide form";
  EXPECT_EQ(columns_of("\U0001F512k"), 3U) << "an emoji";
  EXPECT_EQ(columns_of("שלום"), 4U);
}

TEST(Text, WhatCannotBeSeenIsNamed) {
  EXPECT_EQ(printable("a\u202Eb"), "a<U+202E>b");
  EXPECT_EQ(printable("\u2066x\u2069"), "<U+2066>x<U+2069>");
  EXPECT_EQ(printable("a\u200Bb\uFEFF"), "a<U+200B>b<U+FEFF>");
  EXPECT_EQ(printable("a\u00A0b"), "a<U+00A0>b");
  EXPECT_EQ(printable("\U000E0041"), "<U+E0041>");
  EXPECT_EQ(as_utf8("a\u202Eb"), "a\u202Eb") << "JSON is for programs";
}

TEST(Table, ColumnsAreAligned) {
  Table table({"KEY", "N>"});
  table.add({"a", "1"});
  table.add({"clé\n", "100"});
  EXPECT_EQ(table.text(Style::plain()),
            "KEY     N\n"
            "a       1\n"
            "clé?  100\n");
  table.add({"日本", "2"});
  table.add({"e\u0301\U0001F512", "3"});
  EXPECT_EQ(table.text(Style::plain()),
            "KEY     N\n"
            "a       1\n"
            "clé?  100\n"
            "日本    2\n"
            "e\u0301\U0001F512     3\n");
  EXPECT_TRUE(Table({"A"}).empty());
}

}  // namespace
}  // namespace lockd::cli
