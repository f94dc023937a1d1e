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

// Who waits holds nothing, unless something else is held.
TEST(LineDrain, WhatBlocksGetsAnError) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient waiter = server.connect();
  LineClient enqueued = server.connect();
  LineClient semaphore = server.connect();
  LineClient waiting_holder = server.connect();
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
  ASSERT_EQ(masked(holder.ask(request("sl", "s", "0 1"))), "ok <token> 33");
  ASSERT_EQ(masked(waiting_holder.ask(request("l", "j", "0"))), "ok <token> 33");
  ASSERT_EQ(enqueued.ask(request("e", "k", "")), "queued");
  waiter.send(request("l", "k", "60"));
  waiting_holder.send(request("l", "k", "60"));
  await_stats(holder, "\"waiters\":3");
  // In one segment: when the first has its reply, the second has begun.
  ASSERT_EQ(enqueued.ask(request("ping", "", "") + request("w", "k", "60")), "ok");
  semaphore.send(request("sl", "s", "60 1"));
  await_stats(holder, R"("holders":1,"waiters":1)");
  server.server().drain();
  for (LineClient* client : {&waiter, &enqueued, &semaphore}) {
    EXPECT_EQ(client->read_line(), "error");
    EXPECT_EQ(client->read_line(), kEnd);
  }
  EXPECT_EQ(waiting_holder.read_line(), "error");
  EXPECT_EQ(waiting_holder.ask(request("ping", "", "")), "ok");
}

TEST(LineDrain, WhoHoldsNothingIsClosedAtOnce) {
  LineServer server;
  LineClient silent = server.connect();
  LineClient idle = server.connect();
  LineClient half = server.connect();
  LineClient listener = server.connect();
  LineClient place = server.connect();
  LineClient holder = server.connect();
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
  ASSERT_EQ(idle.ask(request("ping", "", "")), "ok");
  half.send("ping\n");
  ASSERT_EQ(listener.ask(request("listen", "a", "")), "ok");
  ASSERT_EQ(place.ask(request("e", "k", "")), "queued");
  await_stats(holder, "{\"connections\":6,");
  server.server().drain();
  for (LineClient* client : {&silent, &idle, &half, &listener, &place}) {
    EXPECT_EQ(client->read_line(), kEnd);
    client->close();
  }
  EXPECT_TRUE(port_closes(server));
  await_stats(holder, "{\"connections\":1,");
  EXPECT_GT(server.server().line_connections(), 0U);
}

TEST(LineDrain, WhoHoldsIsServedOn) {
  LineServer server;
  LineClient holder = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0 5")));
  const std::string permit = token_of(holder.ask(request("sl", "s", "0 2 5")));
  ASSERT_EQ(masked(holder.ask(request("e", "two phases", ""))), "acquired <token> 33");
  server.server().drain();
  ASSERT_TRUE(port_closes(server));
  EXPECT_EQ(holder.ask(request("n", "k", token)), "ok 5");
  EXPECT_EQ(holder.ask(request("n", "k", token + " 60")), "ok 60");
  EXPECT_EQ(holder.ask(request("sn", "s", permit)), "ok 5");
  EXPECT_EQ(holder.ask(request("n", "k", kUnknownToken)), "error");
  EXPECT_EQ(holder.ask(request("r", "k", kUnknownToken)), "error");
  EXPECT_EQ(holder.ask(request("ping", "", "")), "ok");
  EXPECT_TRUE(holder.ask(request("stats", "", "")).starts_with("ok {\"connections\":1,"));
  EXPECT_EQ(holder.ask(request("signal", "a", "x")), "ok 0");
  EXPECT_EQ(holder.ask(request("unlisten", "a", "")), "ok");
  EXPECT_EQ(holder.ask(request("barrier", "", "")), "ok");
  EXPECT_EQ(holder.ask(request("sr", "s", permit)), "ok");
  EXPECT_EQ(holder.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(holder.ask(request("n", "k", token)), "error");
}

TEST(LineDrain, WhatWouldTakeOrWaitIsRefused) {
  LineServer server;
  LineClient holder = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0")));
  ASSERT_EQ(holder.ask(request("e", "k", "")), "queued");
  ASSERT_EQ(masked(holder.ask(request("e", "two phases", ""))), "acquired <token> 33");
  server.server().drain();
  ASSERT_TRUE(port_closes(server));
  for (const auto& asked :
       {request("l", "free", "0"), request("l", "k", "60"), request("e", "free", ""),
        request("w", "k", "60"), request("w", "two phases", "0"), request("sl", "s", "0 1"),
        request("se", "s", "1"), request("sw", "s", "0"), request("listen", "a", "")}) {
    EXPECT_EQ(holder.ask(asked), "error_draining") << asked;
  }
  EXPECT_EQ(holder.ask(request("n", "k", token)), "ok 33");
}

// All that has come is answered.
TEST(LineDrain, WhoHasReleasedTheLastIsClosed) {
  LineServer server;
  LineClient holder = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0")));
  const std::string other = token_of(holder.ask(request("l", "j", "0")));
  ASSERT_EQ(holder.ask(request("e", "k", "")), "queued");
  server.server().drain();
  ASSERT_TRUE(port_closes(server));
  EXPECT_EQ(holder.ask(request("r", "k", token)),
            "ok");  // which grants it to the place in the queue
  EXPECT_EQ(holder.ask(request("ping", "", "")), "ok");
  EXPECT_EQ(holder.ask(request("r", "j", other) + request("l", "j", "0") + request("ping", "", "")),
            "ok");
  EXPECT_EQ(holder.read_line(), "error_draining");
  EXPECT_EQ(holder.read_line(), "ok");
  EXPECT_EQ(holder.read_line(), kEnd);
}

TEST(LineDrain, WhoseLastLeaseHasEndedIsClosed) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient longer = server.connect();
  ASSERT_EQ(masked(longer.ask(request("l", "j", "0"))), "ok <token> 33");
  const auto asked = LineClient::Clock::now();
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0 1"))), "ok <token> 1");
  server.server().drain();
  EXPECT_EQ(holder.read_line(), kEnd);
  EXPECT_GE(LineClient::Clock::now() - asked, 1s);
  EXPECT_EQ(longer.ask(request("ping", "", "")), "ok");
}

// Its token was used by another.
TEST(LineDrain, WhoseLastHoldWasReleasedByAnotherIsClosed) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient other = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0")));
  ASSERT_EQ(masked(other.ask(request("l", "j", "0"))), "ok <token> 33");
  server.server().drain();
  EXPECT_EQ(other.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(holder.read_line(), kEnd);
}

TEST(LineDrain, AViolationClosesAndReleases) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient other = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0")));
  ASSERT_EQ(masked(other.ask(request("l", "j", "0"))), "ok <token> 33");
  server.server().drain();
  ASSERT_TRUE(port_closes(server));
  EXPECT_EQ(holder.ask(request("nonsense", "", "")), "error");
  EXPECT_EQ(holder.read_line(), kEnd);
  EXPECT_EQ(other.ask(request("n", "k", token)), "error");
}

TEST(LineDrain, WhatStandsBehindABlockedRequestIsAnswered) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient waiter = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0")));
  waiter.send(request("l", "k", "60") + request("l", "j", "0") + request("n", "k", token));
  await_stats(holder, "\"waiters\":1");
  server.server().drain();
  EXPECT_EQ(waiter.read_line(), "error");
  EXPECT_EQ(waiter.read_line(), "error_draining");
  EXPECT_EQ(waiter.read_line(), "ok 33");
  EXPECT_EQ(waiter.read_line(), kEnd);
}

TEST(LineDrain, ItIsDrainedWhenTheLastHolderHasGone) {
  LineServer server;
  LineClient client = server.connect();
  ASSERT_EQ(masked(client.ask(request("l", "k", "0"))), "ok <token> 33");
  server.server().drain();
  EXPECT_GT(server.server().line_connections(), 0U);
  client.close();
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  while (server.server().line_connections() > 0 && LineClient::Clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(server.server().line_connections(), 0U);
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
