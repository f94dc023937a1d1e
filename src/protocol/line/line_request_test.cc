// Commands, phases, arguments, and which violation counts.
#include "protocol/line/line_request.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockd {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

constexpr std::string_view kToken = "00000000000000070123456789abcdef";

ParsedRequest parse(std::string_view command, std::string_view key, std::string_view argument,
                    Phase phase = Phase::open) {
  return parse_request({command, key, argument}, phase);
}

Violation violation(std::string_view command, std::string_view key, std::string_view argument) {
  return parse(command, key, argument).violation;
}

struct Understood {
  std::string_view command;
  std::string_view argument;
  Command is;
  Kind kind = Kind::lock;
  Duration wait = 0s;
  std::optional<Duration> ttl{};
  std::uint32_t limit = 1;
  bool token = false;
};

TEST(LineRequest, EveryLockCommandIsUnderstood) {
  const std::string with_lease = std::string(kToken) + " 60";
  const Understood cases[] = {
      {"l", "10", Command::acquire, Kind::lock, 10s},
      {"l", "0 33", Command::acquire, Kind::lock, 0s, 33s},
      {"r", kToken, Command::release, Kind::lock, 0s, {}, 1, true},
      {"n", kToken, Command::renew, Kind::lock, 0s, {}, 1, true},
      {"n", with_lease, Command::renew, Kind::lock, 0s, 60s, 1, true},
      {"e", "", Command::enqueue},
      {"e", "20", Command::enqueue, Kind::lock, 0s, 20s},
      {"w", "5", Command::await_turn, Kind::lock, 5s},
      {"sl", "10 3", Command::acquire, Kind::semaphore, 10s, {}, 3},
      {"sl", "10 3 60", Command::acquire, Kind::semaphore, 10s, 60s, 3},
      {"sr", kToken, Command::release, Kind::semaphore, 0s, {}, 1, true},
      {"sn", kToken, Command::renew, Kind::semaphore, 0s, {}, 1, true},
      {"sn", with_lease, Command::renew, Kind::semaphore, 0s, 60s, 1, true},
      {"se", "3", Command::enqueue, Kind::semaphore, 0s, {}, 3},
      {"se", "2147483647 60", Command::enqueue, Kind::semaphore, 0s, 60s, 2'147'483'647},
      {"sw", "5", Command::await_turn, Kind::semaphore, 5s},
  };
  for (const Understood& c : cases) {
    const auto parsed = parse(c.command, "my job", c.argument);
    ASSERT_TRUE(parsed) << c.command << ' ' << c.argument;
    const LineRequest& request = parsed.request;
    EXPECT_EQ(request.command, c.is) << c.command;
    EXPECT_EQ(request.kind, c.kind) << c.command;
    EXPECT_EQ(request.key, "my job");
    EXPECT_EQ(request.wait, c.wait) << c.command << ' ' << c.argument;
    EXPECT_EQ(request.ttl, c.ttl) << c.command << ' ' << c.argument;
    EXPECT_EQ(request.limit, c.limit) << c.command << ' ' << c.argument;
    ASSERT_EQ(request.token.has_value(), c.token) << c.command;
    if (c.token) {
      EXPECT_EQ(request.token->fence, 7u);
      EXPECT_EQ(request.token->secret, 0x0123456789abcdefu);
    }
  }
}

TEST(LineRequest, CommandsAreComparedByteForByte) {
  for (const std::string_view command : {""sv,         " "sv,          "x"sv,
                                         "L"sv,        " l"sv,         "l "sv,
                                         "l\t"sv,      "l\0"sv,        "ll"sv,
                                         "s"sv,        "se "sv,        "ls"sv,
                                         "lock"sv,     "PING"sv,       "Stats"sv,
                                         "listen "sv,  "unlisten\r"sv, "signals"sv,
                                         "sig"sv,      "ok"sv,         "\xef\xbb\xbfl"sv,
                                         "\xff"sv,     "*3"sv,         "GET / HTTP/1.1 "sv,
                                         " HTTP/1."sv, "host"sv,       "x Host: a"sv}) {
    // Whatever the other lines are: the command is looked at first.
    EXPECT_EQ(violation(command, "k", "1"), Violation::unknown_command) << command;
    EXPECT_EQ(violation(command, "", "-1 x"), Violation::unknown_command) << command;
  }
}

TEST(LineRequest, StatsPingAndBarrierIgnoreTheirOtherLines) {
  const struct {
    std::string_view command;
    Command is;
  } cases[] = {{"stats", Command::stats}, {"ping", Command::ping}, {"barrier", Command::barrier}};
  for (const auto& c : cases) {
    for (const std::string_view line : {""sv, "_"sv, "a b c d e"sv, "\xff\x01"sv, "*>"sv}) {
      const auto parsed = parse(c.command, line, line);
      ASSERT_TRUE(parsed) << c.command;
      EXPECT_EQ(parsed.request.command, c.is);
    }
  }
}

TEST(LineRequest, BeforeAuthThereIsNoOtherCommandAndAfterItNoAuth) {
  for (const std::string_view command :
       {"l"sv, "r"sv, "n"sv, "e"sv, "w"sv, "sl"sv, "sr"sv, "sn"sv, "se"sv, "sw"sv, "stats"sv,
        "ping"sv, "barrier"sv, "listen"sv, "unlisten"sv, "signal"sv, "client"sv, "junk"sv, ""sv}) {
    EXPECT_EQ(parse(command, "k", "1", Phase::before_auth).violation, Violation::unknown_command)
        << command;
  }
  EXPECT_EQ(violation("auth", "_", "secret"), Violation::unknown_command);
}

TEST(LineRequest, TheSecretIsTheTrimmedArgument) {
  const std::string longest(kLongLineSizeMax, 's');
  const struct {
    std::string_view argument;
    std::string_view secret;
  } cases[] = {
      {"secret", "secret"}, {" \tsecret\t ", "secret"}, {"two  words", "two  words"}, {"", ""},
      {" \t ", ""},         {"\xff\x01", "\xff\x01"},   {longest, longest},
  };
  for (const auto& c : cases) {
    for (const std::string_view key : {"_"sv, ""sv, "\xff"sv}) {
      const auto parsed = parse("auth", key, c.argument, Phase::before_auth);
      ASSERT_TRUE(parsed);
      EXPECT_EQ(parsed.request.command, Command::auth);
      EXPECT_EQ(parsed.request.text, c.secret);
    }
  }
}

TEST(LineRequest, NumbersAreDecimalWithAnOptionalSignAndOf64Bits) {
  constexpr Violation kNone = Violation::none;
  constexpr Violation kNot = Violation::not_an_integer;
  const struct {
    std::string_view text;
    Violation as_wait, as_limit, as_ttl;
    std::int64_t value = 0;  // where it is accepted
  } cases[] = {
      {"1", kNone, kNone, kNone, 1},
      {"+1", kNone, kNone, kNone, 1},
      {"01", kNone, kNone, kNone, 1},
      {"+0000000000000000000000000007", kNone, kNone, kNone, 7},
      {"0", kNone, Violation::bad_limit, Violation::bad_lease},
      {"-0", kNone, Violation::bad_limit, Violation::bad_lease},
      {"+0", kNone, Violation::bad_limit, Violation::bad_lease},
      {"-1", Violation::negative_timeout, Violation::bad_limit, Violation::bad_lease},
      {"2147483647", kNone, kNone, kNone, 2'147'483'647},
      {"2147483648", kNone, Violation::bad_limit, kNone, 2'147'483'648},
      {"4294967297", kNone, Violation::bad_limit, kNone, 4'294'967'297},
      {"9223372036", kNone, Violation::bad_limit, kNone, 9'223'372'036},
      {"9223372037", kNot, Violation::bad_limit, kNot},
      {"9223372036854775807", kNot, Violation::bad_limit, kNot},
      {"9223372036854775808", kNot, kNot, kNot},
      {"18446744073709551617", kNot, kNot, kNot},
      {"99999999999999999999", kNot, kNot, kNot},
      {"-9223372037", Violation::negative_timeout, Violation::bad_limit, Violation::bad_lease},
      {"-9223372036854775808", Violation::negative_timeout, Violation::bad_limit,
       Violation::bad_lease},
      {"-9223372036854775809", kNot, kNot, kNot},
      {"1e3", kNot, kNot, kNot},
      {"1.0", kNot, kNot, kNot},
      {"1.", kNot, kNot, kNot},
      {".5", kNot, kNot, kNot},
      {"1,000", kNot, kNot, kNot},
      {"1_000", kNot, kNot, kNot},
      {"0x10", kNot, kNot, kNot},
      {"10s", kNot, kNot, kNot},
      {"ten", kNot, kNot, kNot},
      {"+", kNot, kNot, kNot},
      {"-", kNot, kNot, kNot},
      {"+-1", kNot, kNot, kNot},
      {"-+1", kNot, kNot, kNot},
      {"++1", kNot, kNot, kNot},
      {"--1", kNot, kNot, kNot},
      {"1-", kNot, kNot, kNot},
      {"inf", kNot, kNot, kNot},
      {"nan", kNot, kNot, kNot},
      {"\xd9\xa1", kNot, kNot, kNot},      // an Arabic digit
      {"\xef\xbc\x91", kNot, kNot, kNot},  // a wide one
      {"1\r", kNot, kNot, kNot},
      {"\v1", kNot, kNot, kNot},
      {"1\0"sv, kNot, kNot, kNot},
  };
  for (const auto& c : cases) {
    const std::string text(c.text);
    for (const auto& parsed : {parse("l", "k", text), parse("w", "k", text), parse("sw", "k", text),
                               parse("sl", "k", text + " 1")}) {
      EXPECT_EQ(parsed.violation, c.as_wait) << text;
      if (!parsed) continue;
      EXPECT_EQ(parsed.request.wait, std::chrono::seconds(c.value)) << text;
    }
    for (const auto& parsed : {parse("se", "k", text), parse("sl", "k", "1 " + text)}) {
      EXPECT_EQ(parsed.violation, c.as_limit) << text;
      if (!parsed) continue;
      EXPECT_EQ(parsed.request.limit, c.value) << text;
    }
    for (const auto& parsed :
         {parse("l", "k", "1 " + text), parse("e", "k", text), parse("sl", "k", "1 1 " + text),
          parse("se", "k", "1 " + text), parse("n", "k", std::string(kToken) + ' ' + text)}) {
      EXPECT_EQ(parsed.violation, c.as_ttl) << text;
      if (!parsed) continue;
      EXPECT_EQ(parsed.request.ttl, std::chrono::seconds(c.value)) << text;
    }
  }
}

TEST(LineRequest, ArgumentsAreSplitOnSpacesAndTabs) {
  for (const std::string_view argument :
       {"1 2 3"sv, " 1 2 3"sv, "1 2 3 "sv, "\t1\t2\t3\t"sv, "  1 \t 2\t\t 3 \t"sv}) {
    const auto parsed = parse("sl", "k", argument);
    ASSERT_TRUE(parsed) << argument;
    EXPECT_EQ(parsed.request.wait, 1s);
    EXPECT_EQ(parsed.request.limit, 2u);
    EXPECT_EQ(parsed.request.ttl, 3s);
  }
}

TEST(LineRequest, TheNumberOfArgumentsIsExact) {
  const struct {
    std::string_view command;
    std::size_t fewest, most;
    bool token = false;
  } cases[] = {
      {"l", 1, 2},  {"r", 1, 1, true},  {"n", 1, 2, true},  {"e", 0, 1},  {"w", 1, 1},
      {"sl", 2, 4}, {"sr", 1, 1, true}, {"sn", 1, 2, true}, {"se", 1, 3}, {"sw", 1, 1},
  };
  for (const auto& c : cases) {
    std::string argument;
    for (std::size_t count = 0; count <= 7; ++count, argument += " 1") {
      const bool good = count >= c.fewest && count <= c.most;
      const Violation bad =
          c.token && count == 0 ? Violation::empty_token : Violation::bad_arguments;
      EXPECT_EQ(violation(c.command, "k", argument), good ? Violation::none : bad)
          << c.command << argument;
      EXPECT_EQ(violation(c.command, "k", argument + " \t"), good ? Violation::none : bad)
          << c.command << argument;
    }
  }
}

TEST(LineRequest, ATokenThatIsNoneIsARequestAllTheSame) {
  for (const char* command : {"r", "n", "sr", "sn"}) {
    for (const std::string_view token : {"abc123"sv, "00000000000000070123456789ABCDEF"sv,
                                         "000000000000000070123456789abcdef"sv, "\xff"sv, "-"sv}) {
      const auto parsed = parse(command, "k", token);
      ASSERT_TRUE(parsed) << command << ' ' << token;
      EXPECT_FALSE(parsed.request.token.has_value()) << token;
    }
    EXPECT_TRUE(parse(command, "k", " \t" + std::string(kToken) + " ").request.token.has_value());
    EXPECT_EQ(violation(command, "k", ""), Violation::empty_token);
    EXPECT_EQ(violation(command, "k", " \t "), Violation::empty_token);
  }
}

TEST(LineRequest, CommandsOfHttpAreToldApart) {
  for (const std::string_view command : {"GET / HTTP/1.1"sv, "POST /a?b HTTP/1.0"sv, " HTTP/1.1"sv,
                                         "Host: a"sv, "host:"sv, "HOST:6388"sv}) {
    EXPECT_EQ(violation(command, "k", "1"), Violation::http_request) << command;
  }
  EXPECT_EQ(violation("l", "Host: a", "0"), Violation::none);
}

TEST(LineRequest, OfSeveralViolationsTheFirstCounts) {
  const struct {
    const char* what;
    std::string_view command, key, argument;
    Violation violation;
  } cases[] = {
      {"command before key", "x", "", "", Violation::unknown_command},
      {"key before the number of arguments", "l", "", "1 2 3", Violation::bad_key},
      {"key before an empty token", "r", "", "", Violation::bad_key},
      {"number of arguments before integers", "l", "k", "a b c", Violation::bad_arguments},
      {"number of arguments before ranges", "l", "k", "-1 -1 -1", Violation::bad_arguments},
      {"an integer before an earlier range", "l", "k", "-1 a", Violation::not_an_integer},
      {"an integer before an earlier limit", "sl", "k", "1 0 a", Violation::not_an_integer},
      {"too many seconds before an earlier range", "sl", "k", "-1 0 9223372037",
       Violation::not_an_integer},
      {"timeout before limit", "sl", "k", "-1 0 0", Violation::negative_timeout},
      {"limit before lease", "sl", "k", "0 0 0", Violation::bad_limit},
      {"lease before permits", "sl", "k", "0 2 0 3", Violation::bad_lease},
      {"permits as an integer before all ranges", "sl", "k", "-1 0 0 x", Violation::not_an_integer},
      {"lease of a token that is none", "n", "k", "abc 0", Violation::bad_lease},
      {"channel before payload", "signal", "a.*", "", Violation::bad_key},
      {"channel's bytes before payload", "signal", "\xff", "", Violation::bad_key},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(violation(c.command, c.key, c.argument), c.violation) << c.what;
  }
}

TEST(LineRequest, TheViolationsHaveTheNumbersOfTheTable) {
  EXPECT_EQ(static_cast<int>(Violation::unknown_command), 3);
  EXPECT_EQ(static_cast<int>(Violation::not_an_integer), 4);
  EXPECT_EQ(static_cast<int>(Violation::bad_key), 5);
  EXPECT_EQ(static_cast<int>(Violation::negative_timeout), 6);
  EXPECT_EQ(static_cast<int>(Violation::empty_token), 7);
  EXPECT_EQ(static_cast<int>(Violation::bad_arguments), 8);
  EXPECT_EQ(static_cast<int>(Violation::bad_lease), 9);
  EXPECT_EQ(static_cast<int>(Violation::read_timeout), 10);
  EXPECT_EQ(static_cast<int>(Violation::disconnected), 11);
  EXPECT_EQ(static_cast<int>(Violation::line_too_long), 12);
  EXPECT_EQ(static_cast<int>(Violation::bad_limit), 13);
}

// A valid argument for every command whose key counts.
constexpr std::string_view kKeyed[][2] = {
    {"l", "1"},     {"r", kToken},    {"n", kToken},   {"e", ""},      {"w", "1"},
    {"sl", "1 1"},  {"sr", kToken},   {"sn", kToken},  {"se", "1"},    {"sw", "1"},
    {"listen", ""}, {"unlisten", ""}, {"signal", "p"}, {"client", ""},
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

TEST(LineRequestNames, AClientsNoteIsTrimmedPlainTextAndMayBeBlank) {
  const std::string longest(kNoteSizeMax, 'n');
  const struct {
    std::string_view argument;
    std::string_view note;
    bool good = true;
  } cases[] = {
      {"", ""},
      {" \t ", ""},
      {"deploy", "deploy"},
      {" \tnightly  backup \t", "nightly  backup"},
      {"日本", "日本"},
      {longest, longest},
      {"a\tb", "", false},
      {"a\rb", "", false},
      {"\x1b[31m", "", false},
      {"\x7f", "", false},
      {"\xff", "", false},
      {"\0"sv, "", false},
  };
  for (const auto& c : cases) {
    const auto parsed = parse("client", "ann@build-7:4711", c.argument);
    EXPECT_EQ(parsed.violation, c.good ? Violation::none : Violation::bad_arguments) << c.argument;
    if (!parsed) continue;
    EXPECT_EQ(parsed.request.command, Command::client);
    EXPECT_EQ(parsed.request.key, "ann@build-7:4711");
    EXPECT_EQ(parsed.request.text, c.note);
  }
  EXPECT_EQ(violation("client", "a", longest + "n"), Violation::bad_arguments);
  EXPECT_EQ(violation("client", "", "\xff"), Violation::bad_key) << "the key comes first";
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

TEST(LineRequest, AClientMayBringItsOwnSecret) {
  const auto parse = [](const char* command, const char* argument) {
    return parse_request({command, "k", argument}, Phase::open);
  };
  for (const auto& [command, argument] :
       {std::pair("l", "5 as=00000000000000ff"), std::pair("l", "5 7 as=00000000000000ff"),
        std::pair("e", "as=00000000000000ff"), std::pair("sl", "5 3 7 as=00000000000000ff"),
        std::pair("se", "3 as=00000000000000ff")}) {
    const ParsedRequest parsed = parse(command, argument);
    ASSERT_TRUE(parsed) << command << " " << argument;
    EXPECT_EQ(parsed.request.secret, 0xffu);
  }
  EXPECT_FALSE(parse("l", "5").request.secret.has_value());
  for (const char* argument :
       {"5 as=", "5 as=ff", "5 as=00000000000000FF", "5 as=0000000000000x00",
        "5 as=00000000000000ff 7", "as=00000000000000ff", "5 7 9 as=00000000000000ff"}) {
    EXPECT_EQ(parse("l", argument).violation == Violation::none, false) << argument;
  }
  EXPECT_EQ(parse("n", "0123456789abcdef0123456789abcdef as=00000000000000ff").violation,
            Violation::not_an_integer);
}

TEST(LineRequest, ALockMayBeAskedForShared) {
  const struct {
    std::string_view command, argument;
    Mode mode;
    Duration wait = 0s;
    std::optional<Duration> ttl{};
  } cases[] = {
      {"l", "5", Mode::exclusive, 5s},
      {"l", "5 shared", Mode::shared, 5s},
      {"l", "5 7 shared", Mode::shared, 5s, 7s},
      {"l", " 5\t7  shared\t", Mode::shared, 5s, 7s},
      {"l", "5 7 shared as=00000000000000ff", Mode::shared, 5s, 7s},
      {"e", "", Mode::exclusive},
      {"e", "shared", Mode::shared},
      {"e", "7 shared", Mode::shared, 0s, 7s},
      {"e", "shared as=00000000000000ff", Mode::shared},
  };
  for (const auto& c : cases) {
    const ParsedRequest parsed = parse(c.command, "k", c.argument);
    ASSERT_TRUE(parsed) << c.command << ' ' << c.argument;
    EXPECT_EQ(parsed.request.mode, c.mode) << c.command << ' ' << c.argument;
    EXPECT_EQ(parsed.request.wait, c.wait) << c.command << ' ' << c.argument;
    EXPECT_EQ(parsed.request.ttl, c.ttl) << c.command << ' ' << c.argument;
  }
}

TEST(LineRequest, SharedIsTheLastWordOfALockAndOfNothingElse) {
  const struct {
    std::string_view command, argument;
    Violation violation;
  } cases[] = {
      {"l", "shared", Violation::bad_arguments},
      {"l", "shared 5", Violation::not_an_integer},
      {"l", "5 shared 7", Violation::bad_arguments},
      {"l", "5 shared shared", Violation::not_an_integer},
      {"l", "5 7 shared shared", Violation::bad_arguments},
      {"l", "5 7 9 shared", Violation::bad_arguments},
      {"l", "5 as=00000000000000ff shared", Violation::not_an_integer},
      {"l", "5 Shared", Violation::not_an_integer},
      {"l", "5 exclusive", Violation::not_an_integer},
      {"l", "5 7 x", Violation::bad_arguments},
      {"e", "7 9 shared", Violation::bad_arguments},
      {"w", "shared", Violation::not_an_integer},
      {"w", "5 shared", Violation::bad_arguments},
      {"r", "00000000000000070123456789abcdef shared", Violation::bad_arguments},
      {"n", "00000000000000070123456789abcdef shared", Violation::not_an_integer},
      {"sl", "5 3 shared", Violation::not_an_integer},
      {"se", "3 7 shared", Violation::not_an_integer},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(violation(c.command, "k", c.argument), c.violation) << c.command << ' ' << c.argument;
  }
}

TEST(LineRequest, PermitsFollowTheLeaseAndAreAtMostTheLimit) {
  const struct {
    std::string_view permits;
    Violation violation;
    std::uint32_t value = 1;
  } cases[] = {
      {"", Violation::none, 1},
      {"1", Violation::none, 1},
      {"+3", Violation::none, 3},
      {"0", Violation::bad_limit},
      {"-1", Violation::bad_limit},
      {"4", Violation::bad_limit},
      {"2147483648", Violation::bad_limit},
      {"4294967297", Violation::bad_limit},
      {"9223372036854775808", Violation::not_an_integer},
      {"all", Violation::not_an_integer},
      {"1 1", Violation::bad_arguments},
  };
  for (const auto& c : cases) {
    for (const std::string secret : {"", " as=00000000000000ff"}) {
      const std::string limit_on = "3 60 " + std::string(c.permits) + secret;
      for (const auto& parsed : {parse("sl", "k", "0 " + limit_on), parse("se", "k", limit_on)}) {
        EXPECT_EQ(parsed.violation, c.violation) << limit_on;
        if (!parsed) continue;
        EXPECT_EQ(parsed.request.permits, c.value) << limit_on;
        EXPECT_EQ(parsed.request.limit, 3u);
        EXPECT_EQ(parsed.request.ttl, 60s);
        EXPECT_EQ(parsed.request.secret.has_value(), !secret.empty());
      }
    }
  }
  EXPECT_EQ(parse("sl", "k", "0 2147483647 1 2147483647").request.permits, 2'147'483'647u);
}

}  // namespace
}  // namespace lockd
