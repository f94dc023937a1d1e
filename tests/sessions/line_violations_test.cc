// Whatever breaks a rule gets `error` and a close; whatever is just inside is served.
#include <gtest/gtest.h>

#include <chrono>
#include <iterator>
#include <span>
#include <string>
#include <thread>

#include "sessions/line_script.h"
#include "support/line_client.h"

namespace lockd {
namespace {

std::string line_of(std::size_t size, char c = 'k') { return std::string(size, c); }

// One of each code, and of each kind of name. LineRequest and LineFramer have every other.
const std::string kBroken[] = {
    "x\nk\n0\n",        "l\nk\nten\n",     "l\n\n0\n",        "l\nk\n-1\n",
    "r\nk\n\n",         "l\nk\n1 2 3\n",   "l\nk\n0 0\n",     "sl\nk\n0 0\n",
    "sl\nk\n0 3 1 4\n", "signal\na*\nx\n", "listen\n>.a\n\n", "client\na\n\xff\n",
};

// Closed whatever the setting: nothing says where the next request begins.
const std::string kUnframed[] = {
    "l\n" + line_of(257) + "\n0\n",
    line_of(257) + "\nk\n0\n",
    "ping\n\n" + line_of(257) + "\n",
    "listen\na\n" + line_of(257, 'g') + "\n",
    "client\na\n" + line_of(65'537, 'n') + "\n",
    line_of(70'000),
};

const Exchange kJustInside[] = {
    {"l\r\nk\r\r\r\n0\r\r\n", "ok <token> 33"},
    {"l\nj\n  +10 \t +60  \n", "ok <token> 60"},
    {"l\n  cl\xc3\xa9 \xf0\x9f\x94\x92  \n0\n", "ok <token> 33"},
    {"l\n" + line_of(256) + "\n0\n", "ok <token> 33"},
    {"ping\n" + line_of(256) + "\n" + line_of(256) + "\n", "ok"},
    {"listen\n" + line_of(256) + "\n" + line_of(256, 'g') + "\n", "ok"},
    {"client\n" + line_of(256) + "\n" + line_of(256, 'n') + "\r\n", "ok"},
    {"signal\n.." + line_of(254) + "\n" + line_of(65'536 - 5 - 256) + "\n", "ok 0"},
    {"signal\na\n" + line_of(65'530) + line_of(6, '\r') + "\n", "ok 0"},
};

TEST(LineViolations, AreErrorsAndCloses) {
  using Requests = std::span<const std::string>;
  for (const Requests requests : {Requests(kBroken), Requests(kUnframed)}) {
    for (const std::string& request : requests) {
      play_every_way({request.substr(0, 40), {{request, "error!"}}}, line_options());
    }
  }
}

TEST(LineViolations, WhatIsJustInsideIsServed) {
  play_every_way({"just inside", {std::begin(kJustInside), std::end(kJustInside)}}, line_options());
}

// The reply must not be lost to the reset that a close with unread input makes.
TEST(LineViolations, TheErrorIsReadWithGarbageBehindIt) {
  LineServer server;
  const std::string garbage(64 * 1024, '\xee');
  for (const std::string& first : kBroken) {
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

// Each is framed as if the one before had been in order.
TEST(LineViolations, WhoGoesOnHoldsOn) {
  LineServer server = lenient_server();
  LineClient client = server.connect();
  LineClient other = server.connect();
  const std::string token = token_of(client.ask(request("l", "k", "0")));
  for (const std::string& broken : kBroken) {
    EXPECT_EQ(client.ask(broken + request("n", "k", token)), "error") << broken;
    EXPECT_EQ(client.read_line(), "ok 33") << broken;
    EXPECT_EQ(other.ask(request("l", "k", "0")), "timeout") << broken;
  }
  EXPECT_EQ(client.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(masked(other.ask(request("l", "k", "0"))), "ok <token> 33");
}

TEST(LineViolations, WhatIsNotFramedClosesAllTheSame) {
  LineServer server = lenient_server();
  for (const std::string& unframed : kUnframed) {
    LineClient client = server.connect();
    EXPECT_EQ(client.ask("x\nk\n0\n" + unframed), "error");
    EXPECT_EQ(client.read_line(), "error");
    EXPECT_EQ(client.read_line(), kEnd);
  }
}

// A web page of any origin can have a browser send these, with lines of its choice behind them.
TEST(LineViolations, AnHttpRequestIsClosedAllTheSame) {
  LineServer server = lenient_server();
  const std::string body = request("l", "k", "0");
  for (const std::string http :
       {"POST / HTTP/1.1\r\nHost: a:6388\r\nContent-Length: 7\r\n\r\n\r\n\r\n",
        "POST / HTTP/1.0\r\n\r\n\r\n", "Host: a:6388\r\n\r\n\r\n", "host: a\n\n\n"}) {
    LineClient page = server.connect();
    EXPECT_EQ(page.ask(request("ping", "", "") + http + body), "ok") << http;
    EXPECT_EQ(page.read_line(), "error") << http;
    EXPECT_EQ(page.read_line(), kEnd) << http;
  }
  EXPECT_EQ(masked(server.connect().ask(body)), "ok <token> 33");
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
