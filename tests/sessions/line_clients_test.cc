// A client that says who it is, and what it is told of then: the holds that it has lost.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

LineClient client_of(LineServer& server) {
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(request("client", "ann@build-7:4711", "deploy")), "ok");
  return client;
}

std::string loss(const std::string& grant, std::string_view key) {
  return "lost " + token_of(grant) + " expired " + std::string(key);
}

TEST(LineClients, ALeaseThatRunsOutIsALoss) {
  LineServer server;
  LineClient client = client_of(server);
  const auto asked = std::chrono::steady_clock::now();
  const std::string grant = client.ask(request("l", "my job", "0 1"));
  EXPECT_EQ(client.read_line(), loss(grant, "my job"));
  EXPECT_GE(std::chrono::steady_clock::now() - asked, 1s) << "never early";
  EXPECT_EQ(client.ask(request("ping", "", "")), "ok") << "once, and the connection goes on";
}

// The next in the queue hears of its grant, and the one before it that it has lost.
TEST(LineClients, AHoldIsPassedOnAndLost) {
  LineServer server;
  LineClient first = client_of(server);
  LineClient second = client_of(server);
  const std::string grant = first.ask(request("l", "k", "0 1"));
  EXPECT_EQ(masked(second.ask(request("l", "k", "30"))), "ok <token> 33");
  EXPECT_EQ(first.read_line(), loss(grant, "k"));
}

}  // namespace
}  // namespace lockd
