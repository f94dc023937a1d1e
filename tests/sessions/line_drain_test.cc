// How a server stops.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "server/server.h"
#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

bool port_closes(LineServer& server) {
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  while (LineClient::Clock::now() < deadline) {
    if (!server.connect().connected()) return true;
    std::this_thread::sleep_for(2ms);
  }
  return false;
}

TEST(LineDrain, WhatBlocksGetsAnError) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient waiter = server.connect();
  LineClient enqueued = server.connect();
  LineClient semaphore = server.connect();
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
  ASSERT_EQ(masked(holder.ask(request("sl", "s", "0 1"))), "ok <token> 33");
  ASSERT_EQ(enqueued.ask(request("e", "k", "")), "queued");
  waiter.send(request("l", "k", "60"));
  await_stats(holder, "\"waiters\":2");
  // In one segment: when the first has its reply, the second has begun.
  ASSERT_EQ(enqueued.ask(request("ping", "", "") + request("w", "k", "60")), "ok");
  semaphore.send(request("sl", "s", "60 1"));
  await_stats(holder, R"("holders":1,"waiters":1)");
  server.server().drain();
  for (LineClient* client : {&waiter, &enqueued, &semaphore}) {
    EXPECT_EQ(client->read_line(), "error");
    EXPECT_EQ(client->ask(request("ping", "", "")), "error_draining");
    EXPECT_EQ(client->read_line(), kEnd);
  }
}

TEST(LineDrain, TheNextRequestIsTheLast) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient idle = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0")));
  ASSERT_EQ(idle.ask(request("ping", "", "")), "ok");
  server.server().drain();
  EXPECT_TRUE(port_closes(server));
  EXPECT_EQ(holder.ask(request("r", "k", token) + request("ping", "", "")), "error_draining");
  EXPECT_EQ(holder.read_line(), kEnd);
  EXPECT_EQ(idle.read_line(50ms), kSilence);
  EXPECT_EQ(idle.ask(request("nonsense", "", "")), "error_draining");
  EXPECT_EQ(idle.read_line(), kEnd);
}

TEST(LineDrain, WhatStandsBehindABlockedRequestIsTheLast) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient waiter = server.connect();
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
  waiter.send(request("l", "k", "60") + request("l", "j", "0") + request("ping", "", ""));
  await_stats(holder, "\"waiters\":1");
  server.server().drain();
  EXPECT_EQ(waiter.read_line(), "error");
  EXPECT_EQ(waiter.read_line(), "error_draining");
  EXPECT_EQ(waiter.read_line(), kEnd);
}

TEST(LineDrain, ItIsDrainedWhenAllHaveGone) {
  LineServer server;
  LineClient client = server.connect();
  ASSERT_EQ(masked(client.ask(request("l", "k", "0"))), "ok <token> 33");
  server.server().drain();
  EXPECT_FALSE(server.server().is_drained());
  client.close();
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  while (!server.server().is_drained() && LineClient::Clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(server.server().is_drained());
}

TEST(LineDrain, StopCutsTheRest) {
  LineServer server;
  LineClient idle = server.connect();
  LineClient holder = server.connect();
  LineClient half = server.connect();
  ASSERT_EQ(idle.ask(request("ping", "", "")), "ok");
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
  half.send("ping\n");
  await_stats(holder, "{\"connections\":3,");
  server.server().drain();
  server.server().stop();
  for (LineClient* client : {&idle, &holder}) EXPECT_EQ(client->read_line(), kEnd);
  EXPECT_TRUE(half.read_line().starts_with('<'));
  EXPECT_FALSE(server.connect().connected());
  server.server().stop();  // once more does nothing
}

TEST(LineDrain, StopDoesNotWaitForASlowReader) {
  LineServer server;
  LineClient slow = server.connect(4096);
  std::string pings;
  for (int i = 0; i < 10'000; ++i) pings += request("stats", "", "");
  slow.send(pings);
  server.server().stop();
}

}  // namespace
}  // namespace lockd
