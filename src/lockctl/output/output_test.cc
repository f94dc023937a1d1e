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
  EXPECT_EQ(cut_to("日本語", 3), "日本語");
  EXPECT_EQ(cut_to("日本語", 2), "日…");
  EXPECT_EQ(cut_to("abc", 0), "");
  EXPECT_EQ(columns_of("clé"), 3U);
}

TEST(Table, ColumnsAreAligned) {
  Table table({"KEY", "N>"});
  table.add({"a", "1"});
  table.add({"clé\n", "100"});
  EXPECT_EQ(table.text(Style::plain()),
            "KEY     N\n"
            "a       1\n"
            "clé?  100\n");
  EXPECT_TRUE(Table({"A"}).empty());
}

}  // namespace
}  // namespace lockd::cli
