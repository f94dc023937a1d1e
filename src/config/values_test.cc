#include "config/values.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace lockd::config {
namespace {

using namespace std::chrono_literals;

TEST(Values, ANumberMayBeSpeltInManyWays) {
  for (const char* ten : {"10", "10.0", "1e1", "1E1", "1.0e+1", "100e-1", "010", "0.1e2", ".1e2",
                          "10.0000000000000000000000"}) {
    EXPECT_EQ(parse_count(ten, 0, UINT64_MAX), 10U) << ten;
    EXPECT_EQ(parse_seconds(ten), 10s) << ten;
  }
  EXPECT_EQ(parse_count("18446744073709551615", 0, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(parse_count("0e999", 0, 9), 0U);
  for (const char* bad : {"", ".", "5.", "-1", "+1", "1e", "e1", "1e+", "1e1.0", "1e1000", "0x1",
                          "1_000", "1,000", " 1", "1 ", "1.2.3", "inf", "nan", "1e999"}) {
    EXPECT_EQ(parse_count(bad, 0, UINT64_MAX), std::nullopt) << bad;
    EXPECT_EQ(parse_seconds(bad), std::nullopt) << bad;
  }
  for (const char* bad : {"0.5", "1e-1", "18446744073709551616", "1e20"}) {
    EXPECT_EQ(parse_count(bad, 0, UINT64_MAX), std::nullopt) << bad;
  }
}

TEST(Values, TimesAreExact) {
  EXPECT_EQ(parse_seconds("0.5"), 500ms);
  EXPECT_EQ(parse_seconds(".007"), 7ms);
  EXPECT_EQ(parse_seconds("1.25"), 1250ms);
  EXPECT_EQ(parse_seconds("0.000000001"), 1ns);
  EXPECT_EQ(parse_seconds("1e-9"), 1ns);
  EXPECT_EQ(parse_seconds("9223372036"), 9223372036s);
  for (const char* bad : {"9223372037", "9223372036.5", "0.0000000001", "1e-10"}) {
    EXPECT_EQ(parse_seconds(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_interval("10ms"), 10ms);
  EXPECT_EQ(parse_interval("1.5s"), 1500ms);
  EXPECT_EQ(parse_interval("2m"), 2min);
  EXPECT_EQ(parse_interval("0.1m"), 6s);
  EXPECT_EQ(parse_interval("1.5h"), 90min);
  EXPECT_EQ(parse_interval("2562047h"), 2562047h);
  for (const char* bad :
       {"", "10", "ms", "s", "m", "h", "10us", "1d", "10 ms", "1m30s", "2562048h", "9223372036m"}) {
    EXPECT_EQ(parse_interval(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_duration("0.5"), 500ms);
  EXPECT_EQ(parse_duration("1e1"), 10s);
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("1h"), 1h);
  for (const char* bad : {"", "-1", "5 s", "5S", "soon"}) {
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
  }
}

TEST(Values, ArePrintedAsTheyAreRead) {
  for (const char* text : {"0", "5", "0.5", "33.000000001", "9223372036"}) {
    EXPECT_EQ(print_seconds(*parse_seconds(text)), text);
  }
  EXPECT_EQ(print_interval(1500ms), "1500ms");
  EXPECT_EQ(print_interval(2s), "2s");
  EXPECT_EQ(print_interval(1ns), "0.000001ms");
  for (const char* text : {"[::1]:80", ":80", "a.b:0"}) {
    EXPECT_EQ(print_address(*parse_address(text)), text);
  }
}

TEST(Values, SizesHaveUnitsOfTwoToTheTenth) {
  EXPECT_EQ(parse_size("0"), 0U);
  EXPECT_EQ(parse_size("512"), 512U);
  EXPECT_EQ(parse_size("16KiB"), 16U * 1024);
  EXPECT_EQ(parse_size("1.5MiB"), 1536U * 1024);
  EXPECT_EQ(parse_size("4GiB"), std::uint64_t{4} << 30);
  for (const char* bad : {"", "KiB", "-1", "1.5", "0.001KiB", "1KB", "1kib", "1 KiB", "1K", "1B",
                          "KiB1", "99999999999GiB", "1e30"}) {
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
  }
  for (const char* text : {"0", "1", "1000", "1KiB", "1025", "1536KiB", "256MiB", "1GiB"}) {
    EXPECT_EQ(print_size(*parse_size(text)), text);
  }
}

TEST(Values, BooleansAreWords) {
  for (const char* word : {"true", "TRUE", "1", "yes", "Yes", "on", "oN"}) {
    EXPECT_EQ(parse_bool(word), true) << word;
  }
  for (const char* word : {"false", "False", "0", "no", "NO", "off", "Off"}) {
    EXPECT_EQ(parse_bool(word), false) << word;
  }
  for (const char* word : {"", "2", "t", "truee", "yes ", "1.0"}) {
    EXPECT_EQ(parse_bool(word), std::nullopt) << word;
  }
}

TEST(Values, AddressesMayLackAPortWhereThereIsOneForThem) {
  EXPECT_EQ(parse_address("[::1]:80"), (Address{"::1", 80}));
  EXPECT_EQ(parse_address(":80"), (Address{"", 80}));
  EXPECT_EQ(parse_address("a:80", 1), (Address{"a", 80}));
  for (const char* host : {"a", "::1", "[::1]", "127.0.0.1"}) {
    EXPECT_EQ(parse_address(host), std::nullopt) << host;
    EXPECT_EQ(parse_address(host, 6388), (Address{*parse_host(host), 6388})) << host;
  }
  for (const char* bad : {"", ":", "a:", "a:b", "a:65536", "[::1", "::1]", "[]", "a b", "::1::2",
                          "[a]", "127.0.0.256"}) {
    EXPECT_EQ(parse_address(bad, 6388), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_address("::1:99999", 6388), std::nullopt);
}

TEST(Values, TokensAreOneLine) {
  EXPECT_EQ(parse_token("  a b\t"), "a b");
  EXPECT_EQ(parse_token("a\nb"), std::nullopt);
  EXPECT_EQ(parse_token(" "), std::nullopt);
}

TEST(Values, AreQuotedOnOneLine) {
  EXPECT_EQ(in_quotes("clé"), "'clé'");
  EXPECT_EQ(in_quotes("a\nb\xff"), "'a\\x0ab\\xff'");
  EXPECT_EQ(in_quotes("\xc2\x9b"), "'\\xc2\\x9b'") << "which is what ESC [ is";
  EXPECT_EQ(in_quotes("\xc2"), "'\\xc2'");
  EXPECT_EQ(in_quotes(std::string(101, 'a')), "'" + std::string(100, 'a') + "...'");
}

}  // namespace
}  // namespace lockd::config
