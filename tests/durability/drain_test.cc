// A server that is asked to stop, and will start again: who left by himself has released.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "durability/durable_server.h"
#include "journal/temporary_directory.h"

namespace lockd {
namespace {

std::string take(LineClient& client, const std::string& key) {
  const std::string reply = client.ask(request("l", key, "0 1000"));
  EXPECT_EQ(masked(reply), "ok <token> 1000");
  return token_of(reply);
}

// The first reply that is not ok.
std::string ask_until_refused(LineClient& client) {
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  std::string reply = "ok";
  while (reply == "ok" && LineClient::Clock::now() < deadline) {
    reply = client.ask(request("ping", "", ""));
  }
  return reply;
}

TEST(DrainTest, WhatIsHeldIsHeldAfterwards) {
  const TemporaryDirectory directory;
  std::string stayed;
  std::string asked;
  std::string left_before;
  std::string left_meanwhile;
  {
    ServerProcess server(durable(directory.path(), {"--shutdown-timeout", "3"}));
    LineClient stays = server.connect();
    LineClient asks = server.connect();
    LineClient leaves_before = server.connect();
    LineClient leaves_meanwhile = server.connect();
    stayed = take(stays, "stayed");
    asked = take(asks, "asked");
    left_before = take(leaves_before, "left before");
    left_meanwhile = take(leaves_meanwhile, "left meanwhile");
    leaves_before.close();
    await_stats(stays, "\"connections\":3");
    server.terminate();
    EXPECT_EQ(ask_until_refused(asks), "error_draining");
    leaves_meanwhile.close();
    EXPECT_EQ(asks.read_line(), kEnd);
    EXPECT_EQ(stays.read_line(), kEnd);  // when its time is over
    EXPECT_EQ(server.await_exit(), 0);
  }
  ServerProcess server(durable(directory.path()));
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(request("l", "stayed", "0")), "timeout");
  EXPECT_EQ(client.ask(request("n", "stayed", stayed)), "ok 1000");
  EXPECT_EQ(client.ask(request("l", "asked", "0")), "timeout");
  EXPECT_EQ(client.ask(request("r", "asked", asked)), "ok");
  EXPECT_EQ(client.ask(request("n", "left before", left_before)), "error");
  EXPECT_NE(take(client, "left before"), "");
  EXPECT_EQ(client.ask(request("n", "left meanwhile", left_meanwhile)), "error");
  EXPECT_NE(take(client, "left meanwhile"), "");
}

}  // namespace
}  // namespace lockd
