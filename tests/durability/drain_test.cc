// A server that is asked to stop, and will start again: who left by himself has released, and who
// asked to.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>

#include "durability/durable_server.h"
#include "journal/testing/temporary_directory.h"

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
  std::string given_back;
  {
    // With one thread all hear of it at once.
    ServerProcess server(durable(directory.path(), {"--shutdown-timeout", "8", "--threads", "1"}));
    LineClient stays = server.connect();
    LineClient asks = server.connect();
    LineClient leaves_before = server.connect();
    LineClient leaves_meanwhile = server.connect();
    LineClient gives_back = server.connect();
    stayed = take(stays, "stayed");
    asked = take(asks, "asked");
    left_before = take(leaves_before, "left before");
    left_meanwhile = take(leaves_meanwhile, "left meanwhile");
    given_back = take(gives_back, "given back");
    EXPECT_NE(take(gives_back, "beside it"), "");
    leaves_before.close();
    await_stats(stays, "\"connections\":4");
    server.terminate();
    EXPECT_EQ(ask_until_refused(asks), "error_draining");
    leaves_meanwhile.close();
    EXPECT_EQ(gives_back.ask(request("r", "given back", given_back)), "error_draining");
    EXPECT_EQ(gives_back.read_line(), kEnd);
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
  EXPECT_EQ(client.ask(request("n", "given back", given_back)), "error");
  EXPECT_NE(take(client, "given back"), "");
  EXPECT_EQ(client.ask(request("l", "beside it", "0")), "timeout");
}

TEST(DrainTest, TheLongestTimeoutIsLong) {
  ServerProcess server({"--shutdown-timeout", "9223372036", "--threads", "1"});
  LineClient stays = server.connect();
  LineClient asks = server.connect();
  EXPECT_NE(take(stays, "k"), "");
  server.terminate();
  EXPECT_EQ(ask_until_refused(asks), "error_draining");
  EXPECT_EQ(stays.read_line(std::chrono::milliseconds(300)), kSilence);
  stays.close();
  EXPECT_EQ(server.await_exit(), 0);
}

// Only the journal says that the journal has failed.
TEST(DrainTest, ASignalFromOutsideIsNoFailure) {
  const ServerProcess server;
  LineClient client = server.connect();
  ASSERT_EQ(::kill(server.pid(), SIGUSR1), 0);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(client.ask(request("ping", "", "")), "ok");
}

}  // namespace
}  // namespace lockd
