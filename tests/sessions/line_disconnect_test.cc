// What becomes of places and holds when a connection goes.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

enum class Leaving { close, half_close, reset };
constexpr Leaving kEveryWay[] = {Leaving::close, Leaving::half_close, Leaving::reset};

void leave(LineClient& client, Leaving how) {
  switch (how) {
    case Leaving::close: return client.close();
    case Leaving::half_close: return client.half_close();
    case Leaving::reset: return client.reset();
  }
}

TEST(LineDisconnect, AWaiterThatLeavesIsNeverGranted) {
  for (const Leaving how : kEveryWay) {
    LineServer server;
    LineClient holder = server.connect();
    LineClient ghost = server.connect();
    LineClient next = server.connect();
    const std::string token = token_of(holder.ask(request("l", "k", "0")));
    ghost.send(request("l", "k", "60"));
    await_stats(holder, "\"waiters\":1");
    next.send(request("l", "k", "60"));
    await_stats(holder, "\"waiters\":2");
    leave(ghost, how);
    await_stats(holder, "\"waiters\":1");
    EXPECT_EQ(holder.ask(request("r", "k", token)), "ok");
    EXPECT_EQ(masked(next.read_line()), "ok <token> 33");
    if (how == Leaving::half_close) {
      EXPECT_EQ(ghost.read_line(), kEnd);
    }
  }
}

TEST(LineDisconnect, WhatIsHeldIsPassedOn) {
  for (const Leaving how : kEveryWay) {
    LineServer server;
    LineClient observer = server.connect();
    LineClient holder = server.connect();
    LineClient waiter = server.connect();
    ASSERT_EQ(masked(holder.ask(request("l", "k", "0 1000"))), "ok <token> 1000");
    ASSERT_EQ(masked(holder.ask(request("sl", "k", "0 1 1000"))), "ok <token> 1000");
    ASSERT_EQ(masked(holder.ask(request("e", "j", "1000"))), "acquired <token> 1000");
    waiter.send(request("l", "k", "60") + request("sl", "k", "60 1") + request("l", "j", "60"));
    await_stats(observer, "\"waiters\":1");
    leave(holder, how);
    EXPECT_EQ(masked(waiter.read_line()), "ok <token> 33");
    EXPECT_EQ(masked(waiter.read_line()), "ok <token> 33");
    EXPECT_EQ(masked(waiter.read_line()), "ok <token> 33");
  }
}

TEST(LineDisconnect, WithoutAutoReleaseWhatIsHeldIsKept) {
  Options options = line_options();
  options.auto_release_on_disconnect = false;
  LineServer server(options);
  LineClient other = server.connect();
  LineClient holder = server.connect();
  const auto asked = SteadyClock::now();
  const std::string token = token_of(holder.ask(request("l", "long", "0 1000")));
  ASSERT_EQ(masked(holder.ask(request("l", "short", "0 1"))), "ok <token> 1");
  ASSERT_EQ(masked(holder.ask(request("e", "told", "1000"))), "acquired <token> 1000");
  holder.close();
  await_stats(other, "{\"connections\":1,");
  EXPECT_EQ(other.ask(request("l", "long", "0")), "timeout");
  EXPECT_EQ(other.ask(request("l", "told", "0")), "timeout");
  EXPECT_EQ(masked(other.ask(request("l", "short", "60"))), "ok <token> 33");
  EXPECT_GE(SteadyClock::now(), asked + 1s);
  EXPECT_EQ(other.ask(request("r", "long", token)), "ok");
}

// A grant that nobody was told of cannot be used by anybody: it goes, whatever the options say.
TEST(LineDisconnect, AnUnacknowledgedGrantIsAlwaysReleased) {
  for (const bool auto_release : {true, false}) {
    Options options = line_options();
    options.auto_release_on_disconnect = auto_release;
    LineServer server(options);
    LineClient other = server.connect();
    LineClient ghost = server.connect();
    const std::string token = token_of(other.ask(request("l", "k", "0")));
    ASSERT_EQ(ghost.ask(request("e", "k", "1000")), "queued");
    ASSERT_EQ(other.ask(request("r", "k", token)), "ok");
    ASSERT_EQ(other.ask(request("l", "k", "0")), "timeout");
    ghost.close();
    EXPECT_EQ(masked(other.ask(request("l", "k", "60"))), "ok <token> 33");
  }
}

// The server may hear of the release before it hears that the first in the queue has left.
TEST(LineDisconnect, WithoutAutoReleaseAGrantToOneThatHasLeftIsTakenBack) {
  Options options = line_options();
  options.auto_release_on_disconnect = false;
  LineServer server(options);
  LineClient observer = server.connect();
  LineClient holder = server.connect();
  std::string token = token_of(holder.ask(request("l", "k", "0 1000")));
  for (int round = 0; round < 100; ++round) {
    LineClient leaver = server.connect();
    LineClient next = server.connect();
    if (round % 3 == 0) {
      ASSERT_EQ(leaver.ask(request("e", "k", "1000")), "queued");
      // In one segment: when the first has its reply, the second has begun.
      ASSERT_EQ(leaver.ask(request("ping", "", "") + request("w", "k", "1000")), "ok");
    } else {
      leaver.send(request("l", "k", "1000 1000"));
    }
    await_stats(observer, "\"waiters\":1}");
    next.send(request("l", "k", "1000 1000"));
    await_stats(observer, "\"waiters\":2}");
    leave(leaver, kEveryWay[round % 3]);
    ASSERT_EQ(observer.ask(request("r", "k", token)), "ok");
    const std::string grant = next.read_line();
    ASSERT_EQ(masked(grant), "ok <token> 1000") << round;
    token = token_of(grant);
  }
}

TEST(LineDisconnect, SubscriptionsEnd) {
  for (const Leaving how : kEveryWay) {
    LineServer server;
    LineClient publisher = server.connect();
    LineClient listener = server.connect();
    ASSERT_EQ(listener.ask(request("listen", "a", "")), "ok");
    ASSERT_EQ(publisher.ask(request("signal", "a", "x")), "ok 1");
    leave(listener, how);
    await_stats(publisher, "\"signal_channels\":[]");
    EXPECT_EQ(publisher.ask(request("signal", "a", "x")), "ok 0");
  }
}

TEST(LineDisconnect, TwoHundredAreResetInTheMiddleOfARequest) {
  LineServer server;
  LineClient observer = server.connect();
  const std::string token = token_of(observer.ask(request("l", "held", "0 1000")));
  const std::string requests = request("l", "mine", "0") + request("l", "held", "60") + "r\nmi";
  std::vector<LineClient> ghosts;
  for (std::size_t i = 0; i < 200; ++i) {
    ghosts.push_back(server.connect());
    ghosts.back().send(requests.substr(0, 1 + i % requests.size()));
  }
  await_stats(observer, "{\"connections\":201,");  // else some would not be accepted yet
  for (LineClient& ghost : ghosts) ghost.reset();
  const std::string stats = await_stats(observer, "{\"connections\":1,");
  EXPECT_NE(stats.find("{\"connections\":1,"), std::string::npos) << stats;
  EXPECT_NE(stats.find("\"waiters\":0}]"), std::string::npos) << stats;
  EXPECT_EQ(observer.ask(request("r", "held", token)), "ok");
  EXPECT_EQ(masked(observer.ask(request("l", "held", "0"))), "ok <token> 33");
  EXPECT_EQ(masked(observer.ask(request("l", "mine", "0"))), "ok <token> 33");
}

}  // namespace
}  // namespace lockd
