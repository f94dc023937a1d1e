// Limits, and the answer at each.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// Until the server has noticed that there is room again.
LineClient connect_when_admitted(LineServer& server) {
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  for (;;) {
    LineClient client = server.connect();
    if (client.ask(request("ping", "", "")) == "ok") return client;
    if (LineClient::Clock::now() > deadline) return client;
    std::this_thread::sleep_for(5ms);
  }
}

TEST(LineLimits, MaxLocksCountsBothNamespaces) {
  Options options = line_options();
  options.max_locks = 2;
  LineServer server(options);
  LineClient client = server.connect();
  const std::string token = token_of(client.ask(request("l", "a", "0")));
  ASSERT_EQ(masked(client.ask(request("sl", "a", "0 1"))), "ok <token> 33");
  EXPECT_EQ(client.ask(request("l", "b", "0")), "error_max_locks");
  EXPECT_EQ(client.ask(request("l", "b", "60")), "error_max_locks");
  EXPECT_EQ(client.ask(request("e", "b", "")), "error_max_locks");
  EXPECT_EQ(client.ask(request("sl", "b", "0 1")), "error_max_locks");
  EXPECT_EQ(client.ask(request("se", "b", "1")), "error_max_locks");
  EXPECT_EQ(client.ask(request("l", "a", "0")), "timeout");  // it is there already
  // An idle key gives way.
  EXPECT_EQ(client.ask(request("r", "a", token)), "ok");
  EXPECT_EQ(masked(client.ask(request("l", "b", "0"))), "ok <token> 33");
  EXPECT_EQ(client.ask(request("l", "a", "0")), "error_max_locks");
}

TEST(LineLimits, MaxWaitersIsPerKey) {
  Options options = line_options();
  options.max_waiters = 1;
  LineServer server(options);
  LineClient a = server.connect();
  LineClient b = server.connect();
  LineClient c = server.connect();
  const std::string token = token_of(a.ask(request("l", "k", "0")));
  ASSERT_EQ(b.ask(request("e", "k", "")), "queued");
  EXPECT_EQ(c.ask(request("l", "k", "60")), "error_max_waiters");
  EXPECT_EQ(c.ask(request("l", "k", "0")), "timeout");
  EXPECT_EQ(c.ask(request("e", "k", "")), "error_max_waiters");
  ASSERT_EQ(masked(a.ask(request("sl", "k", "0 1"))), "ok <token> 33");
  ASSERT_EQ(b.ask(request("se", "k", "1")), "queued");
  EXPECT_EQ(c.ask(request("sl", "k", "60 1")), "error_max_waiters");
  EXPECT_EQ(c.ask(request("se", "k", "1")), "error_max_waiters");
  EXPECT_EQ(a.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(c.ask(request("e", "k", "")), "queued");  // b holds: there is room
}

TEST(LineLimits, AnIdleSemaphoreTakesAnotherLimit) {
  LineServer server(line_options());
  LineClient client = server.connect();
  const std::string token = token_of(client.ask(request("sl", "pool", "0 3")));
  EXPECT_EQ(client.ask(request("sl", "pool", "0 5")), "error_limit_mismatch");
  EXPECT_EQ(client.ask(request("sr", "pool", token)), "ok");
  EXPECT_EQ(masked(client.ask(request("sl", "pool", "0 5"))), "ok <token> 33");
}

TEST(LineLimits, MaxHoldsCountsHoldsAndPlacesOfAllKeys) {
  Options options = line_options();
  options.max_holds = 3;
  LineServer server(options);
  LineClient a = server.connect();
  LineClient b = server.connect();
  const std::string token = token_of(a.ask(request("l", "k", "0")));
  ASSERT_EQ(masked(a.ask(request("sl", "k", "0 9"))), "ok <token> 33");
  ASSERT_EQ(b.ask(request("e", "k", "")), "queued");
  EXPECT_EQ(b.ask(request("l", "more", "0")), "error_max_holds");
  EXPECT_EQ(a.ask(request("e", "k", "")), "error_max_holds");
  EXPECT_EQ(b.ask(request("sl", "k", "60 9")), "error_max_holds");
  EXPECT_EQ(b.ask(request("se", "k", "9")), "error_max_holds");
  EXPECT_EQ(a.ask(request("n", "k", token + " 33")), "ok 33");
  EXPECT_EQ(a.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(masked(b.ask(request("w", "k", "60"))), "ok <token> 33");
  EXPECT_EQ(masked(b.ask(request("l", "more", "0"))), "ok <token> 33");
}

TEST(LineLimits, MaxHoldsPerClientIsPerConnection) {
  Options options = line_options();
  options.max_holds_per_client = 1;
  LineServer server(options);
  LineClient a = server.connect();
  LineClient b = server.connect();
  const std::string token = token_of(a.ask(request("l", "k", "0")));
  EXPECT_EQ(a.ask(request("sl", "k", "0 9")), "error_max_holds");
  EXPECT_EQ(a.ask(request("e", "k", "")), "error_max_holds");
  EXPECT_EQ(b.ask(request("e", "k", "")), "queued");
  EXPECT_EQ(b.ask(request("l", "more", "0")), "error_max_holds");
  EXPECT_EQ(a.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(masked(a.ask(request("l", "more", "0"))), "ok <token> 33");
}

TEST(LineLimits, ALeaseLongerThanMaxLeaseTtlIsGrantedThatMuchAndToldSo) {
  Options options = line_options();
  options.max_lease_ttl = 20s;
  LineServer server(options);
  LineClient client = server.connect();
  const std::string granted = client.ask(request("l", "k", "0 9223372036"));
  EXPECT_EQ(masked(granted), "ok <token> 20");
  EXPECT_EQ(masked(client.ask(request("l", "default", "0"))), "ok <token> 20");
  EXPECT_EQ(client.ask(request("n", "k", token_of(granted) + " 600")), "ok 20");
  EXPECT_EQ(client.ask(request("n", "k", token_of(granted) + " 7")), "ok 7");
  EXPECT_EQ(client.ask(request("n", "k", token_of(granted))), "ok 20");
  EXPECT_EQ(masked(client.ask(request("e", "two", "600"))), "acquired <token> 20");
  EXPECT_EQ(masked(client.ask(request("w", "two", "0"))), "ok <token> 20");
}

TEST(LineLimits, MaxConnections) {
  for (const bool per_ip : {false, true}) {
    Options options = line_options();
    (per_ip ? options.max_connections_per_ip : options.max_connections) = 2;
    LineServer server(options);
    LineClient a = server.connect();
    LineClient b = server.connect();
    ASSERT_EQ(a.ask(request("ping", "", "")), "ok");
    ASSERT_EQ(b.ask(request("ping", "", "")), "ok");
    LineClient c(server.port(), 0,
                 false);             // it says nothing: what it said would be answered by RST
    EXPECT_EQ(c.read_line(), kEnd);  // not a byte
    b.close();
    LineClient d = connect_when_admitted(server);
    EXPECT_EQ(d.ask(request("ping", "", "")), "ok");
    EXPECT_EQ(a.ask(request("ping", "", "")), "ok");
  }
}

TEST(LineLimits, MaxSubscriptionsIsPerConnection) {
  Options options = line_options();
  options.max_subscriptions = 2;
  LineServer server(options);
  LineClient a = server.connect();
  LineClient b = server.connect();
  EXPECT_EQ(a.ask(request("listen", "x", "")), "ok");
  EXPECT_EQ(a.ask(request("listen", "x", "g")), "ok");
  EXPECT_EQ(a.ask(request("listen", "y", "")), "error");
  EXPECT_EQ(a.ask(request("listen", "x", "")), "ok");  // it has that one
  EXPECT_EQ(b.ask(request("listen", "y", "")), "ok");
  EXPECT_EQ(a.ask(request("unlisten", "x", "g")), "ok");
  EXPECT_EQ(a.ask(request("listen", "y", "")), "ok");
}

}  // namespace
}  // namespace lockd
