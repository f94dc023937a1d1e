// Whatever breaks a rule gets `error` and a close; whatever is just inside is served.
#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "sessions/line_script.h"
#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::string_literals;

const std::string kToken = "00000000000000010123456789abcdef";

// A request that has a reply, which is `error` and a close when nothing is said.
struct Case {
  std::string request;
  std::string reply = "error!";
};

const Case kCommands[] = {
    {"x\nk\n0\n"},
    {"\nk\n0\n"},
    {"L\nk\n0\n"},
    {" l\nk\n0\n"},
    {"l \nk\n0\n"},
    {"PING\n\n\n"},
    {"ping \n\n\n"},
    {"lock\nk\n0\n"},
    {"auth\n\nsecret\n"},
    {"\xff\xfe\nk\n0\n"},
    {"l\0\nk\n0\n"s},
    {"ll\nk\n0\n"},
    {"\n\n\n"},
    {"stats\t\n\n\n"},
    {"s\nk\n0\n"},
    {"\rl\nk\n0\n"},
    {"l\r\nk\r\n0\r\n", "ok <token> 33"},
    {"l\r\r\nk\r\r\r\n0\r\r\n", "ok <token> 33"},
    {"ping\r\n\r\n\r\n", "ok"},
    {"signal\r\na\r\nx\r\n", "ok 0"},
};

const Case kNumbers[] = {
    {"l\nk\nten\n"},
    {"l\nk\n1.5\n"},
    {"l\nk\n0x10\n"},
    {"l\nk\n1e3\n"},
    {"l\nk\n10s\n"},
    {"l\nk\n--1\n"},
    {"l\nk\n+-1\n"},
    {"l\nk\n-\n"},
    {"l\nk\n+\n"},
    {"l\nk\n1,000\n"},
    {"l\nk\n5\r6\n"},
    {"l\nk\n5\v\n"},
    {"l\nk\n\xd9\xa3\n"},
    {"l\nk\n9223372037\n"},
    {"l\nk\n9223372036854775807\n"},
    {"l\nk\n9223372036854775808\n"},
    {"l\nk\n99999999999999999999\n"},
    {"l\nk\n-1\n"},
    {"l\nk\n-9223372036854775808\n"},
    {"l\nk\n0 0\n"},
    {"l\nk\n0 -1\n"},
    {"l\nk\n0 ten\n"},
    {"l\nk\n0 9223372037\n"},
    {"e\nk\n0\n"},
    {"e\nk\n-5\n"},
    {"e\nk\nx\n"},
    {"e\nk\n9223372037\n"},
    {"w\nk\n-1\n"},
    {"w\nk\nx\n"},
    {"n\nk\n" + kToken + " 0\n"},
    {"n\nk\n" + kToken + " -1\n"},
    {"n\nk\n" + kToken + " x\n"},
    {"sl\nk\n0 0\n"},
    {"sl\nk\n0 -1\n"},
    {"sl\nk\n0 x\n"},
    {"sl\nk\n0 2147483648\n"},
    {"sl\nk\n0 9223372036854775808\n"},
    {"sl\nk\n-1 1\n"},
    {"sl\nk\n0 1 0\n"},
    {"sl\nk\n0 3 1 0\n"},
    {"sl\nk\n0 3 1 -1\n"},
    {"sl\nk\n0 3 1 4\n"},
    {"sl\nk\n0 3 1 x\n"},
    {"se\nk\n0\n"},
    {"se\nk\n3 1 4\n"},
    {"se\nk\n2147483648\n"},
    {"se\nk\n1 0\n"},
    {"sw\nk\n-1\n"},
    {"sn\nk\n" + kToken + " 0\n"},
    {"l\nk\n+0\n", "ok <token> 33"},
    {"l\nk\n-0\n", "ok <token> 33"},
    {"l\nk\n007\n", "ok <token> 33"},
    {"l\nk\n+10 +60\n", "ok <token> 60"},
    {"l\nk\n  10 \t 60  \n", "ok <token> 60"},
    {"l\nk\n10\t60\n", "ok <token> 60"},
    {"l\nk\n0 0000000000000000000000000000001\n", "ok <token> 1"},
    {"sl\nk\n+0 +2 +5\n", "ok <token> 5"},
    {"sl\nk\n+0 +2 +5 +2\n", "ok <token> 5"},
    {"e\nk\n 9223372036 \n", "acquired <token> 9223372036"},
};

const Case kArguments[] = {
    {"l\nk\n\n"},          {"l\nk\n  \t\n"},
    {"l\nk\n1 2 3\n"},     {"r\nk\n\n"},
    {"r\nk\n \t \n"},      {"r\nk\n" + kToken + " 1\n"},
    {"n\nk\n\n"},          {"n\nk\n" + kToken + " 1 2\n"},
    {"e\nk\n1 2\n"},       {"w\nk\n\n"},
    {"w\nk\n1 2\n"},       {"sl\nk\n\n"},
    {"sl\nk\n0\n"},        {"sl\nk\n0 1 2 1 1\n"},
    {"sr\nk\n\n"},         {"sr\nk\na b\n"},
    {"sn\nk\n\n"},         {"se\nk\n\n"},
    {"se\nk\n1 2 1 1\n"},  {"sw\nk\n\n"},
    {"sw\nk\n1 2\n"},      {"signal\na\n\n"},
    {"signal\na\n \t \n"}, {"signal\na\n\r\n"},
    {"client\na\nx\ty\n"}, {"client\na\n\xff\n"},
    {"l\nk\nshared\n"},    {"l\nk\n0 shared 1\n"},
    {"l\nk\n0 SHARED\n"},  {"sl\nk\n0 1 shared\n"},
};

const Case kKeys[] = {
    {"l\n\n0\n"},
    {"l\n\r\n0\n"},
    {"l\na\tb\n0\n"},
    {"l\na\rb\n0\n"},
    {"l\na\0b\n0\n"s},
    {"l\na\x1f\n0\n"},
    {"l\na\x7f\n0\n"},
    {"l\n\xff\n0\n"},
    {"l\n\xc3\n0\n"},
    {"l\n\xc0\xaf\n0\n"},
    {"l\n\xed\xa0\x80\n0\n"},
    {"l\n\xf4\x90\x80\x80\n0\n"},
    {"l\n\xe2\x82\n0\n"},
    {"r\n\n" + kToken + "\n"},
    {"e\n\n\n"},
    {"w\n\n0\n"},
    {"sl\n\n0 1\n"},
    {"signal\n\nx\n"},
    {"signal\na.*\nx\n"},
    {"signal\na.>\nx\n"},
    {"signal\na*b\nx\n"},
    {"signal\n>\nx\n"},
    {"listen\n\n\n"},
    {"listen\na*\n\n"},
    {"listen\n*a\n\n"},
    {"listen\na.>.b\n\n"},
    {"listen\na.b>\n\n"},
    {"listen\n>>\n\n"},
    {"listen\n**\n\n"},
    {"listen\na\x01\n\n"},
    {"client\n\n\n"},
    {"client\na\x01\n\n"},
    {"l\n \n0\n", "ok <token> 33"},
    {"l\nmy job\n0\n", "ok <token> 33"},
    {"l\n  spaces around  \n0\n", "ok <token> 33"},
    {"l\ncl\xc3\xa9-\xe6\x97\xa5\xe6\x9c\xac\n0\n", "ok <token> 33"},
    {"l\n\xf0\x9f\x94\x92\n0\n", "ok <token> 33"},
    {"l\n\xc2\x80\n0\n", "ok <token> 33"},
    {"l\na.*.>\n0\n", "ok <token> 33"},
    {"l\n\"\\\n0\n", "ok <token> 33"},
    {"listen\n.\n\n", "ok"},
    {"listen\n.>\n\n", "ok"},
    {"signal\n..\nx\n", "ok 0"},
};

std::string line_of(std::size_t size, char c = 'k') { return std::string(size, c); }

const Case kLengths[] = {
    {"l\n" + line_of(256) + "\n0\n", "ok <token> 33"},
    {"l\n" + line_of(257) + "\n0\n"},
    {"l\n" + line_of(255) + "\r\n0\n", "ok <token> 33"},
    {"l\n" + line_of(256) + "\r\n0\n"},
    {"l\nk\n" + line_of(255, ' ') + "0\n", "ok <token> 33"},
    {"l\nk\n" + line_of(256, ' ') + "0\n"},
    {line_of(256) + "\nk\n0\n"},
    {line_of(257) + "\nk\n0\n"},
    {line_of(70'000)},
    {"ping\n" + line_of(256) + "\n" + line_of(256) + "\n", "ok"},
    {"ping\n" + line_of(257) + "\n\n"},
    {"ping\n\n" + line_of(257) + "\n"},
    {"signal\n" + line_of(257) + "\nx\n"},
    {"signal\n" + line_of(256) + "\n" + line_of(65'536 - 5 - 256) + "\n", "ok 0"},
    {"signal\r\na\r\n" + line_of(65'536 - 5 - 1) + "\r\n", "ok 0"},
    {"signal\na\n" + line_of(65'530) + line_of(6, '\r') + "\n", "ok 0"},
    {"signal\na\n" + line_of(65'530) + line_of(7, '\r') + "\n"},
    {"stats\n\n" + line_of(257) + "\n"},
    {"listen\n" + line_of(256) + "\n" + line_of(256, 'g') + "\n", "ok"},
    {"listen\na\n" + line_of(257, 'g') + "\n"},
    {"client\n" + line_of(256) + "\n" + line_of(256, 'n') + "\r\n", "ok"},
    {"client\n" + line_of(257) + "\n\n"},
    {"client\na\n" + line_of(257, 'n') + "\n"},
    {"client\na\n" + line_of(65'537, 'n') + "\n"},
};

void play_all(std::span<const Case> cases) {
  for (const Case& c : cases) {
    const std::string name = c.request.substr(0, 40);
    play_every_way({name, {{c.request, c.reply}}}, line_options());
  }
}

TEST(LineViolations, Commands) { play_all(kCommands); }
TEST(LineViolations, Numbers) { play_all(kNumbers); }
TEST(LineViolations, Arguments) { play_all(kArguments); }
TEST(LineViolations, Keys) { play_all(kKeys); }
TEST(LineViolations, Lengths) { play_all(kLengths); }

// The reply must not be lost to the reset that a close with unread input makes.
TEST(LineViolations, TheErrorIsReadWithGarbageBehindIt) {
  LineServer server;
  const std::string garbage(64 * 1024, '\xee');
  for (const std::string first :
       {"x\nk\n0\n", "l\nk\nten\n", "l\n\n0\n", "l\nk\n-1\n", "r\nk\n\n", "l\nk\n1 2 3\n",
        "l\nk\n0 0\n", "sl\nk\n0 0\n", "signal\na*\nx\n", "listen\n>.a\n\n", ""}) {
    LineClient client = server.connect();
    client.send(first + garbage);
    EXPECT_EQ(client.read_line(), "error") << first;
    EXPECT_EQ(client.read_line(), kEnd) << first;
  }
}

TEST(LineViolations, NothingBehindAViolationIsExecuted) {
  LineServer server;
  LineClient client = server.connect();
  client.send("x\nk\n0\nl\nk\n0 1000\n");
  EXPECT_EQ(client.read_line(), "error");
  EXPECT_EQ(client.read_line(), kEnd);
  LineClient other = server.connect();
  EXPECT_EQ(masked(other.ask("l\nk\n0\n")), "ok <token> 33");
}

// With --no-close-on-violation.

LineServer lenient_server() {
  Options options = line_options();
  options.close_on_violation = false;
  return LineServer(options);
}

// All on one connection: each is framed as if the one before had been in order.
TEST(LineViolations, TheConnectionMayGoOn) {
  LineServer server = lenient_server();
  LineClient client = server.connect();
  for (const auto& cases : {std::span<const Case>(kCommands), std::span<const Case>(kNumbers),
                            std::span<const Case>(kArguments), std::span<const Case>(kKeys)}) {
    for (const Case& c : cases) {
      if (c.reply != "error!") continue;
      ASSERT_EQ(client.ask(c.request), "error") << c.request;
    }
  }
  EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
}

// One of each code.
TEST(LineViolations, WhoGoesOnHoldsOn) {
  LineServer server = lenient_server();
  LineClient client = server.connect();
  LineClient other = server.connect();
  const std::string token = token_of(client.ask(request("l", "k", "0")));
  for (const std::string broken : {"x\nk\n0\n", "l\nk\nten\n", "l\n\n0\n", "l\nk\n-1\n", "r\nk\n\n",
                                   "l\nk\n1 2 3\n", "l\nk\n0 0\n", "sl\nk\n0 0\n"}) {
    EXPECT_EQ(client.ask(broken + request("n", "k", token)), "error") << broken;
    EXPECT_EQ(client.read_line(), "ok 33") << broken;
    EXPECT_EQ(other.ask(request("l", "k", "0")), "timeout") << broken;
  }
  EXPECT_EQ(client.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(masked(other.ask(request("l", "k", "0"))), "ok <token> 33");
}

TEST(LineViolations, WhatIsNotFramedClosesAllTheSame) {
  Options options = line_options();
  options.close_on_violation = false;
  options.read_timeout = std::chrono::milliseconds(200);
  LineServer server(options);
  LineClient too_long = server.connect();
  LineClient too_late = server.connect();
  too_late.send("l\nk\n");
  EXPECT_EQ(too_long.ask("x\nk\n0\n" + ("l\n" + line_of(257) + "\n0\n")), "error");
  EXPECT_EQ(too_long.read_line(), "error");
  EXPECT_EQ(too_long.read_line(), kEnd);
  EXPECT_EQ(too_late.read_line(), "error");
  EXPECT_EQ(too_late.read_line(), kEnd);
}

TEST(LineViolations, NobodyGoesOnBeforeAuth) {
  Options options = line_options();
  options.close_on_violation = false;
  options.secret = "secret";
  LineServer server(options);
  for (const std::string broken : {"x\nk\n0\n", "l\nk\nten\n", "auth\n\nwrong\n"}) {
    LineClient client = server.connect();
    EXPECT_EQ(client.ask(broken), "error_auth") << broken;
    EXPECT_EQ(client.read_line(), kEnd) << broken;
  }
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(request("auth", "", "secret")), "ok");
  EXPECT_EQ(client.ask(request("auth", "", "secret")), "error");  // an unknown command by now
  EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
}

// The end is said, and then input is drained, but not for ever: a peer that stays is cut off.
TEST(LineViolations, WhoDoesNotCloseIsClosed) {
  LineServer server;
  LineClient client = server.connect();
  // Behind a grant: with a journal the end has to wait for it.
  ASSERT_EQ(masked(client.ask(request("l", "k", "0") + request("bogus", "", ""))), "ok <token> 33");
  ASSERT_EQ(client.read_line(), "error");
  ASSERT_EQ(client.read_line(), kEnd);
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  while (client.send("x") && LineClient::Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LT(LineClient::Clock::now(), deadline);
}

}  // namespace
}  // namespace lockd
