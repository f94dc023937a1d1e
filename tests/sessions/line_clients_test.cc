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

TEST(LineClients, APermitThatRunsOutIsALoss) {
  LineServer server;
  LineClient client = client_of(server);
  const std::string grant = client.ask(request("sl", "pool", "0 2 1"));
  EXPECT_EQ(client.read_line(), loss(grant, "pool"));
}

TEST(LineClients, ALossComesWhileARequestBlocks) {
  LineServer server;
  LineClient holder = server.connect();
  ASSERT_EQ(masked(holder.ask(request("l", "busy", "0 600"))), "ok <token> 600");
  LineClient client = client_of(server);
  const std::string grant = client.ask(request("l", "k", "0 1"));
  client.send(request("l", "busy", "3"));
  EXPECT_EQ(client.read_line(), loss(grant, "k"));
  EXPECT_EQ(client.read_line(), "timeout");
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

TEST(LineClients, WhoHasNotSaidWhoItIsIsNotTold) {
  LineServer server;
  LineClient client = server.connect();
  ASSERT_EQ(masked(client.ask(request("l", "k", "0 1"))), "ok <token> 1");
  LineClient other = server.connect();
  EXPECT_EQ(masked(other.ask(request("l", "k", "30"))), "ok <token> 33");
  EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
}

TEST(LineClients, WhatItReleasesIsNoLoss) {
  LineServer server;
  LineClient client = client_of(server);
  const std::string grant = client.ask(request("l", "k", "0 1"));
  ASSERT_EQ(client.ask(request("r", "k", token_of(grant))), "ok");
  EXPECT_EQ(client.read_line(1500ms), kSilence);
}

TEST(LineClients, ARenewedHoldIsNotLost) {
  LineServer server;
  LineClient client = client_of(server);
  const std::string grant = client.ask(request("l", "k", "0 1"));
  ASSERT_EQ(client.ask(request("n", "k", token_of(grant) + " 60")), "ok 60");
  EXPECT_EQ(client.read_line(1500ms), kSilence);
}

// Before auth there is no other command, and after it `client` is one like any.
TEST(LineClients, AuthComesFirst) {
  Options options = line_options();
  options.secret = "a long enough secret";
  LineServer server(options);
  LineClient stranger = server.connect();
  EXPECT_EQ(stranger.ask(request("client", "ann", "")), "error_auth");
  EXPECT_EQ(stranger.read_line(), kEnd);
  LineClient client = server.connect();
  ASSERT_EQ(client.ask(request("auth", "", "a long enough secret")), "ok");
  EXPECT_EQ(client.ask(request("client", "ann", "")), "ok");
}

}  // namespace
}  // namespace lockd
