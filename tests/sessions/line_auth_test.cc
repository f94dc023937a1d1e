// Who may come in.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

Options secret_options() {
  Options options = line_options();
  options.secret = options.auth_token = "open sesame";
  return options;
}

// `error_auth`, a pause of 100 ms, and a close.
void expect_refusal(LineClient& client, SteadyClock::time_point asked) {
  EXPECT_EQ(client.read_line(), "error_auth");
  EXPECT_EQ(client.read_line(), kEnd);
  EXPECT_GE(SteadyClock::now(), asked + 90ms);
}

TEST(LineAuth, TheRightSecretOpens) {
  LineServer server(secret_options());
  for (const char* argument : {"open sesame", "  open sesame\t ", "open sesame\r"}) {
    LineClient client = server.connect();
    client.send(request("auth", "ignored", argument) + request("w", "k", "0"));
    EXPECT_EQ(client.read_line(), "ok");
    EXPECT_EQ(client.read_line(), "error");
    EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
  }
}

TEST(LineAuth, AnythingElseFirstIsRefused) {
  LineServer server(secret_options());
  const std::string firsts[] = {
      request("auth", "", "open"),
      request("auth", "", ""),
      request("auth", "", "Open Sesame"),
      request("auth", "", std::string(65'536, 'x')),
      request("auth", "", std::string(65'537, 'x')),
      request("stats", "", ""),
      request("l", "k", "0"),
      request("x", "", ""),
      request("l", "", "bad"),
      std::string(1000, 'x'),
      request("auth", std::string(257, 'k'), "open sesame"),
  };
  std::vector<LineClient> clients;  // their pauses pass together
  const auto asked = SteadyClock::now();
  for (const std::string& first : firsts) {
    clients.push_back(server.connect());
    clients.back().send(first);
  }
  for (LineClient& client : clients) {
    SCOPED_TRACE(firsts[&client - clients.data()].substr(0, 40));
    expect_refusal(client, asked);
  }
}

TEST(LineAuth, NothingBehindARefusalIsExecuted) {
  LineServer server(secret_options());
  LineClient client = server.connect();
  const auto asked = SteadyClock::now();
  client.send(request("auth", "", "wrong") + request("auth", "", "open sesame") +
              request("l", "k", "0 1000") + std::string(64 * 1024, 'x'));
  expect_refusal(client, asked);
  LineClient other = server.connect();
  EXPECT_EQ(other.ask(request("auth", "", "open sesame")), "ok");
  EXPECT_EQ(masked(other.ask(request("l", "k", "0"))), "ok <token> 33");
}

TEST(LineAuth, TheEndOfInputDoesNotShortenThePause) {
  LineServer server(secret_options());
  LineClient client = server.connect();
  const auto asked = SteadyClock::now();
  client.send(request("auth", "", "wrong"));
  client.half_close();
  expect_refusal(client, asked);
}

// Who tries often from one address waits for longer; who knows the secret does not wait.
TEST(LineAuth, ThePauseGrowsForOneAddressButNotForARightSecret) {
  LineServer server(secret_options());
  for (int i = 0; i < 20; ++i) {
    LineClient guesser = server.connect();
    ASSERT_EQ(guesser.ask(request("auth", "", "wrong")), "error_auth");
  }
  LineClient guesser = server.connect();
  const auto asked = SteadyClock::now();
  EXPECT_EQ(guesser.ask(request("auth", "", "wrong")), "error_auth");
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(request("auth", "", "open sesame")), "ok");
  EXPECT_EQ(guesser.read_line(), kEnd);
  EXPECT_GE(SteadyClock::now(), asked + 200ms);
}

TEST(LineAuth, AfterItViolationsAreErrorsAndSoIsASecondAuth) {
  LineServer server(secret_options());
  for (const std::string& second : {request("auth", "", "open sesame"), request("x", "", "")}) {
    LineClient client = server.connect();
    EXPECT_EQ(client.ask(request("auth", "", "open sesame")), "ok");
    EXPECT_EQ(client.ask(second), "error");
    EXPECT_EQ(client.read_line(), kEnd);
  }
}

}  // namespace
}  // namespace lockd
