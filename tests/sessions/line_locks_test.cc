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

TEST(LineLocks, TwoPhaseAndPlainWaitersShareOneLine) {
  LineServer server;
  LineClient a = server.connect();
  LineClient b = server.connect();
  LineClient c = server.connect();
  const std::string token = token_of(a.ask(request("l", "k", "0")));
  EXPECT_EQ(b.ask(request("e", "k", "")), "queued");
  c.send(request("l", "k", "60"));
  await_stats(a, "\"waiters\":2");
  EXPECT_EQ(a.ask(request("r", "k", token)), "ok");
  const std::string second = b.ask(request("w", "k", "60"));
  EXPECT_EQ(masked(second), "ok <token> 33");
  EXPECT_EQ(c.read_line(50ms), kSilence);
  EXPECT_EQ(b.ask(request("r", "k", token_of(second))), "ok");
  EXPECT_EQ(masked(c.read_line()), "ok <token> 33");
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

TEST(LineLocks, AWaiterBlocksUntilTheReleaseOfASemaphore) {
  LineServer server;
  LineClient a = server.connect();
  LineClient b = server.connect();
  const std::string token = token_of(a.ask(request("sl", "k", "0 2")));
  EXPECT_EQ(masked(a.ask(request("sl", "k", "0 2"))), "ok <token> 33");
  b.send(request("sl", "k", "60 2 40"));
  await_stats(a, R"({"key":"k","limit":2,"holders":2,"waiters":1})");
  EXPECT_EQ(a.ask(request("sr", "k", token)), "ok");
  EXPECT_EQ(masked(b.read_line()), "ok <token> 40");
}

// Who shares waits behind who wants the lock alone, and is let in with all who share behind it.
TEST(LineLocks, SharedWaitersAreLetInTogetherAndOvertakeNobody) {
  LineServer server;
  LineClient reader = server.connect();
  LineClient writer = server.connect();
  LineClient first = server.connect();
  LineClient second = server.connect();
  LineClient last = server.connect();
  const std::string read = token_of(reader.ask(request("l", "k", "0 shared")));
  writer.send(request("l", "k", "60"));
  await_stats(reader, "\"waiters\":1");
  first.send(request("l", "k", "60 shared"));
  await_stats(reader, "\"waiters\":2");
  second.send(request("l", "k", "60 shared"));
  await_stats(reader, "\"waiters\":3");
  last.send(request("l", "k", "60"));
  await_stats(reader, "\"waiters\":4");

  EXPECT_EQ(reader.ask(request("r", "k", read)), "ok");
  const std::string written = writer.read_line();
  EXPECT_EQ(masked(written), "ok <token> 33");
  EXPECT_EQ(first.read_line(50ms), kSilence);
  EXPECT_EQ(writer.ask(request("r", "k", token_of(written))), "ok");
  const std::string one = first.read_line();
  const std::string two = second.read_line();
  EXPECT_EQ(masked(one), "ok <token> 33");
  EXPECT_EQ(masked(two), "ok <token> 33");
  EXPECT_LT(token_of(one), token_of(two));
  EXPECT_EQ(first.ask(request("r", "k", token_of(one))), "ok");
  EXPECT_EQ(last.read_line(50ms), kSilence);
  EXPECT_EQ(second.ask(request("r", "k", token_of(two))), "ok");
  EXPECT_EQ(masked(last.read_line()), "ok <token> 33");
}

TEST(LineLocks, ARequestForOnePermitWaitsBehindOneForSeveral) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient large = server.connect();
  LineClient small = server.connect();
  const std::string two = token_of(holder.ask(request("sl", "k", "0 5 60 2")));
  const std::string other_two = token_of(holder.ask(request("sl", "k", "0 5 60 2")));
  large.send(request("sl", "k", "60 5 60 4"));
  await_stats(holder, "\"waiters\":1");
  small.send(request("sl", "k", "60 5"));
  await_stats(holder, "\"waiters\":2");
  EXPECT_EQ(holder.ask(request("sr", "k", two)), "ok");
  EXPECT_EQ(small.read_line(50ms), kSilence);
  EXPECT_EQ(holder.ask(request("sr", "k", other_two)), "ok");
  EXPECT_EQ(masked(large.read_line()), "ok <token> 60");
  EXPECT_EQ(masked(small.read_line()), "ok <token> 33");
}

TEST(LineLocks, ADisconnectGivesBackAllPermitsAndOneShare) {
  LineServer server;
  LineClient waiter = server.connect();
  LineClient reader = server.connect();
  ASSERT_EQ(masked(reader.ask(request("l", "k", "0 shared"))), "ok <token> 33");
  {
    LineClient gone = server.connect();
    ASSERT_EQ(masked(gone.ask(request("l", "k", "0 shared"))), "ok <token> 33");
    ASSERT_EQ(masked(gone.ask(request("sl", "k", "0 5 60 5"))), "ok <token> 60");
    waiter.send(request("sl", "k", "60 5 60 5"));
    await_stats(reader, "\"waiters\":1");
  }
  EXPECT_EQ(masked(waiter.read_line()), "ok <token> 60");
  EXPECT_EQ(waiter.ask(request("l", "k", "0")), "timeout");  // the other reader is still there
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

TEST(LineLocks, ARenewedLeasePassesOnNeverEarly) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient waiter = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0 60")));
  waiter.send(request("l", "k", "60"));
  const auto asked = SteadyClock::now();
  EXPECT_EQ(holder.ask(request("n", "k", token + " 1")), "ok 1");
  EXPECT_EQ(masked(waiter.read_line()), "ok <token> 33");
  EXPECT_GE(SteadyClock::now(), asked + 1s);
  EXPECT_EQ(holder.ask(request("n", "k", token)), "error");  // nothing is resurrected
  EXPECT_EQ(holder.ask(request("r", "k", token)), "error");
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

// The lease of a place runs from its grant, and `w` resets it; lapsed, it answers one `w`.
TEST(LineLocks, ALapsedPlaceAnswersOneWait) {
  Options options = line_options();
  options.detailed_errors = true;
  LineServer server(options);
  LineClient a = server.connect();
  LineClient b = server.connect();
  LineClient c = server.connect();
  ASSERT_EQ(masked(a.ask(request("e", "told", "1"))), "acquired <token> 1");
  const std::string token = token_of(b.ask(request("l", "untold", "0")));
  ASSERT_EQ(a.ask(request("e", "untold", "1")), "queued");
  ASSERT_EQ(b.ask(request("r", "untold", token)), "ok");
  ASSERT_EQ(masked(a.ask(request("e", "again", "1"))), "acquired <token> 1");
  for (const std::string key : {"told", "untold", "again"}) {
    const std::string reply = c.ask(request("l", key, "60"));  // when the lease has lapsed
    ASSERT_EQ(masked(reply), "ok <token> 33");
    ASSERT_EQ(c.ask(request("r", key, token_of(reply))), "ok");
  }
  EXPECT_EQ(a.ask(request("w", "told", "0")), "error_lease_expired");
  EXPECT_EQ(a.ask(request("w", "told", "0")), "error_not_enqueued");
  EXPECT_EQ(a.ask(request("w", "untold", "0")), "error_lease_expired");
  EXPECT_EQ(masked(a.ask(request("e", "untold", ""))), "acquired <token> 33");
  EXPECT_EQ(masked(a.ask(request("e", "again", ""))), "acquired <token> 33");
}

}  // namespace
}  // namespace lockd
