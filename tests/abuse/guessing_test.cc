// Peers that try one auth token after the other: each try takes time, and is counted.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

#include "load/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/http_client.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

double failures(const ServerProcess& server, const std::string& protocol) {
  return metric(server, "lockd_auth_failures_total{protocol=\"" + protocol + "\"}");
}

TEST(Abuse, GuessingOverHttp) {
  const ServerProcess server(
      {"--threads", "2", "--http-addr", "127.0.0.1:0", "--auth-token", kHonestToken});
  const HonestClients honest(
      server, {.attack = "guessing over HTTP", .token = kHonestToken, .reads_metrics = true});
  const std::string guesses = repeated(
      "GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n", 1000);
  std::size_t answers = 0;
  for (const auto end = SteadyClock::now() + scaled(3s); SteadyClock::now() < end;) {
    HttpClient guesser(ClientSocket::To{.port = server.http_port()});
    ASSERT_TRUE(guesser.send(guesses));
    for (int i = 1; i <= 10; ++i) {
      const auto asked = SteadyClock::now();
      const HttpReply reply = guesser.read_reply();
      ASSERT_EQ(reply.status, 401) << reply.body;
      EXPECT_GE(SteadyClock::now(), asked + (i == 1 ? 0ms : 90ms)) << "they come one by one";
      EXPECT_EQ(reply.field("Connection"), i == 10 ? "close" : "");
      ++answers;
      if (SteadyClock::now() > end) break;
    }
  }
  std::printf("%zu guesses were answered\n", answers);
  EXPECT_LE(answers, 30U);
  EXPECT_TRUE(server.comes_to_log("authentication failed"));
}

// Each costs a connection, which is kept for a while; the right secret from the same address is
// answered at once, before any of those.
TEST(Abuse, GuessingOnTheLinePort) {
  const ServerProcess server(
      {"--threads", "2", "--http-addr", "127.0.0.1:0", "--auth-token", kHonestToken});
  const HonestClients honest(
      server,
      {.attack = "guessing on the line port", .token = kHonestToken, .reads_metrics = true});
  Swarm guessers(server.port());
  const std::size_t count = scaled(400);
  ASSERT_TRUE(guessers.connect(count));
  const auto asked = SteadyClock::now();
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(guessers.send(i, request("auth", "", "guess" + std::to_string(i))));
  }
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(guessers.read_line(i), "error_auth");
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(request("auth", "", kHonestToken)), "ok");
  EXPECT_EQ(failures(server, "line"), static_cast<double>(count));
  // Most of them by far have failed after twenty others.
  std::size_t early = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(guessers.read_line(i), kEnd);
    EXPECT_GE(SteadyClock::now(), asked + 100ms);
    if (SteadyClock::now() < asked + 5s) ++early;
  }
  EXPECT_LE(early, count / 2);
}

}  // namespace
}  // namespace lockd
