// Between connections: the order of grants, and time.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST(LineLocks, FiftyWaitersAreServedInTheirOrder) {
  LineServer server;
  LineClient observer = server.connect();
  LineClient holder = server.connect();
  std::string token = token_of(holder.ask(request("l", "k", "0")));
  std::vector<LineClient> waiters;
  for (int i = 1; i <= 50; ++i) {
    waiters.push_back(server.connect());
    waiters.back().send(request("l", "k", "60"));
    const std::string part = "\"waiters\":" + std::to_string(i) + "}";
    ASSERT_NE(await_stats(observer, part).find(part), std::string::npos);
  }
  LineClient* last = &holder;
  for (LineClient& waiter : waiters) {
    EXPECT_EQ(last->ask(request("r", "k", token)), "ok");
    const std::string reply = waiter.read_line();
    ASSERT_EQ(masked(reply), "ok <token> 33");
    EXPECT_GT(token_of(reply), token);  // tokens sort in the order of their grants
    token = token_of(reply);
    last = &waiter;
  }
}

TEST(LineLocks, ADefaultLeaseIsNoShorterThanItIsTold) {
  Options options = line_options();
  options.default_lease_ttl = 300ms;
  LineServer server(options);
  LineClient holder = server.connect();
  LineClient waiter = server.connect();
  const SteadyClock::time_point before = SteadyClock::now();
  EXPECT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 1");
  EXPECT_EQ(masked(waiter.ask(request("l", "k", "60"))), "ok <token> 1");
  EXPECT_GE(SteadyClock::now() - before, 1s);
}

TEST(LineLocks, AnyConnectionMayUseAToken) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient other = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0 60")));
  EXPECT_EQ(other.ask(request("n", "k", token + " 70")), "ok 70");
  EXPECT_EQ(other.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(holder.ask(request("n", "k", token)), "error");
}

TEST(LineLocks, AWaitPairsOnlyWithItsOwnEnqueue) {
  LineServer server;
  LineClient a = server.connect();
  LineClient b = server.connect();
  EXPECT_EQ(masked(a.ask(request("e", "k", ""))), "acquired <token> 33");
  EXPECT_EQ(b.ask(request("w", "k", "0")), "error");
  EXPECT_EQ(b.ask(request("e", "k", "")), "queued");
}

TEST(LineLocks, LeasesPassOnNeverEarly) {
  LineServer server;
  LineClient holder = server.connect();
  struct Pair {
    SteadyClock::time_point asked;
    LineClient waiter;
  };
  std::vector<Pair> pairs;
  for (int i = 0; i < 16; ++i) {
    const std::string key = "k" + std::to_string(i);
    const auto asked = SteadyClock::now();
    ASSERT_EQ(masked(holder.ask(request("l", key, "0 1"))), "ok <token> 1");
    pairs.push_back({asked, server.connect()});
    pairs.back().waiter.send(request("l", key, "60"));
    std::this_thread::sleep_for(7ms);
  }
  for (Pair& pair : pairs) {
    EXPECT_EQ(masked(pair.waiter.read_line()), "ok <token> 33");
    EXPECT_GE(SteadyClock::now(), pair.asked + 1s);
  }
}

TEST(LineLocks, WaitsTimeOutNeverEarly) {
  LineServer server;
  LineClient holder = server.connect();
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
  LineClient a = server.connect();
  LineClient b = server.connect();
  ASSERT_EQ(b.ask(request("e", "k", "")), "queued");
  const auto asked = SteadyClock::now();
  a.send(request("l", "k", "1"));
  b.send(request("w", "k", "1"));
  for (LineClient* client : {&a, &b}) {
    EXPECT_EQ(client->read_line(), "timeout");
    EXPECT_GE(SteadyClock::now(), asked + 1s);
  }
  EXPECT_NE(await_stats(holder, "\"waiters\":0").find("\"waiters\":0"), std::string::npos);
  EXPECT_EQ(b.ask(request("w", "k", "0")), "error");
}

}  // namespace
}  // namespace lockd
