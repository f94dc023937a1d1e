// Every call of a Connection against the real server.
#include <gtest/gtest.h>

#include <stop_token>
#include <string>
#include <thread>

#include "client/test_server.h"
#include "server/server.h"
#include "support/lying_server.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

TEST(Connection, AcquiresRenewsAndReleases) {
  const TestServer server;
  Connection connection = server.open();
  const auto before = BootClock::now();
  const auto grant = connection.acquire({.key = "clé-日本", .lease = 30s});
  const auto after = BootClock::now();
  ASSERT_TRUE(grant) << describe(grant);
  EXPECT_EQ(grant->lease, 30s);
  EXPECT_EQ(grant->token.size(), 32u);
  EXPECT_EQ(grant->fence, std::stoull(grant->token.substr(0, 16), nullptr, 16));
  EXPECT_GE(grant->certain_until(), before + 30s);
  EXPECT_LE(grant->certain_until(), after + 30s);

  const LineHold hold{.key = "clé-日本", .token = grant->token};
  const auto renewed = connection.renew(hold, 60s);
  ASSERT_TRUE(renewed) << describe(renewed);
  EXPECT_EQ(renewed->remaining, 60s);
  EXPECT_EQ(connection.renew(hold)->remaining, 30s);
  EXPECT_TRUE(connection.release(hold));
  EXPECT_EQ(connection.release(hold).outcome, Outcome::refused);
  EXPECT_EQ(connection.renew(hold).outcome, Outcome::refused);
}

TEST(Connection, WaitsInLineAndTimesOut) {
  const TestServer server;
  Connection holder = server.open();
  Connection waiter = server.open();
  const auto held = holder.acquire({.key = "k", .lease = 600s});
  ASSERT_TRUE(held);
  EXPECT_EQ(waiter.acquire({.key = "k"}).outcome, Outcome::timeout);
  const auto before = BootClock::now();
  EXPECT_EQ(waiter.acquire({.key = "k", .wait = 1s}).outcome, Outcome::timeout);
  EXPECT_GE(BootClock::now() - before, 1s);

  std::jthread releaser([&] {
    LineClient observer = LineClient(server.port());
    await_stats(observer, "\"waiters\":1");
    EXPECT_TRUE(holder.release({.key = "k", .token = held->token}));
  });
  const auto granted = waiter.acquire({.key = "k", .wait = 60s});
  ASSERT_TRUE(granted) << describe(granted);
  EXPECT_GT(granted->fence, held->fence);
}

TEST(Connection, LeavesTheLineWhenStopped) {
  TestServer server;
  Connection holder = server.open();
  Connection waiter = server.open();
  ASSERT_TRUE(holder.acquire({.key = "k", .lease = 600s}));
  std::stop_source source;
  LineClient observer = server.connect();
  std::jthread stopper([&] {
    await_stats(observer, "\"waiters\":1");
    source.request_stop();
  });
  EXPECT_EQ(waiter.acquire({.key = "k", .wait = 3600s}, source.get_token()).outcome,
            Outcome::cancelled);
  stopper.join();
  EXPECT_NE(await_stats(observer, "\"waiters\":0").find("\"waiters\":0"), std::string::npos);
}

TEST(Connection, Semaphores) {
  const TestServer server;
  Connection connection = server.open();
  LineAcquire slot{.key = "pool", .kind = Kind::semaphore, .limit = 2};
  const auto first = connection.acquire(slot);
  ASSERT_TRUE(first) << describe(first);
  ASSERT_TRUE(connection.acquire(slot));
  EXPECT_EQ(connection.acquire(slot).outcome, Outcome::timeout);
  slot.limit = 3;
  EXPECT_EQ(connection.acquire(slot).outcome, Outcome::limit_mismatch);
  const LineHold hold{.key = "pool", .token = first->token, .kind = Kind::semaphore};
  EXPECT_TRUE(connection.renew(hold, 60s));
  EXPECT_EQ(connection.release({.key = "pool", .token = first->token}).outcome, Outcome::refused)
      << "locks are another namespace";
  EXPECT_TRUE(connection.release(hold));
}

TEST(Connection, TwoPhases) {
  Options options = line_options();
  options.detailed_errors = true;
  const TestServer server(options);
  Connection holder = server.open();
  Connection waiter = server.open();
  const auto held = holder.enqueue({.key = "k", .lease = 60s});
  ASSERT_TRUE(held) << describe(held);
  EXPECT_EQ(held->lease, 60s);
  EXPECT_EQ(waiter.await_turn({.key = "k"}).outcome, Outcome::not_enqueued);
  EXPECT_EQ(waiter.enqueue({.key = "k"}).outcome, Outcome::queued);
  EXPECT_EQ(waiter.enqueue({.key = "k"}).outcome, Outcome::already_enqueued);
  EXPECT_TRUE(holder.release({.key = "k", .token = held->token}));
  const auto turn = waiter.await_turn({.key = "k", .wait = 60s});
  ASSERT_TRUE(turn) << describe(turn);
  EXPECT_GT(turn->fence, held->fence);

  const LineEnqueue slot{.key = "pool", .kind = Kind::semaphore, .limit = 1};
  ASSERT_TRUE(holder.enqueue(slot));
  EXPECT_EQ(waiter.enqueue(slot).outcome, Outcome::queued);
  EXPECT_EQ(waiter.await_turn({.key = "pool", .kind = Kind::semaphore}).outcome, Outcome::timeout);
}

TEST(Connection, SignalsArriveAlsoWhileARequestWaits) {
  const TestServer server;
  Connection holder = server.open();
  Connection listener = server.open();
  ASSERT_TRUE(holder.acquire({.key = "k", .lease = 600s}));
  ASSERT_TRUE(listener.listen("orders.>"));
  std::jthread publisher([&] {
    LineClient observer(server.port());
    await_stats(observer, "\"waiters\":1");
    const auto reached = holder.publish("orders.42", "ready, with  two blanks");
    EXPECT_TRUE(reached);
    EXPECT_EQ(*reached, 1u);
  });
  EXPECT_EQ(listener.acquire({.key = "k", .wait = 2s}).outcome, Outcome::timeout);
  publisher.join();
  const auto signal = listener.next_signal(60s);
  ASSERT_TRUE(signal) << describe(signal);
  EXPECT_EQ(signal->channel, "orders.42");
  EXPECT_EQ(signal->payload, "ready, with  two blanks");

  EXPECT_TRUE(listener.unlisten("orders.>"));
  EXPECT_EQ(*holder.publish("orders.42", "again"), 0u);
  EXPECT_EQ(listener.next_signal(10ms).outcome, Outcome::timeout);
}

TEST(Connection, AGroupSharesItsSignals) {
  const TestServer server;
  Connection one = server.open();
  Connection two = server.open();
  ASSERT_TRUE(one.listen("a", "the packers"));
  ASSERT_TRUE(two.listen("a", "the packers"));
  EXPECT_EQ(*one.publish("a", "1"), 1u);
  EXPECT_EQ(*one.publish("a", "2"), 1u);
  EXPECT_TRUE(one.next_signal(60s));
  EXPECT_TRUE(two.next_signal(60s));
}

TEST(Connection, StatsPingAndBarrier) {
  const TestServer server;
  Connection connection = server.open();
  const auto stats = connection.stats();
  ASSERT_TRUE(stats);
  EXPECT_TRUE(stats->starts_with("{\"connections\":1,")) << *stats;
  EXPECT_TRUE(connection.ping());
  EXPECT_TRUE(connection.barrier());
}

TEST(Connection, SaysTheSecret) {
  Options options = line_options();
  options.secret = options.auth_token = "s3cret";
  const TestServer server(options);
  ConnectOptions right = connect_options();
  right.auth_token = "s3cret";
  EXPECT_TRUE(server.open(right).ping());

  ConnectOptions wrong = right;
  wrong.auth_token = "guess";
  const auto refused = Connection::open(server.address(), wrong);
  EXPECT_EQ(refused.outcome, Outcome::unauthorized) << describe(refused);
  EXPECT_EQ(Connection::open(server.address(), connect_options()).outcome, Outcome::unauthorized);
  // Who says nothing at all is let in no further than the first request.
  ConnectOptions nobody = connect_options();
  nobody.name = "";
  Connection silent = server.open(nobody);
  EXPECT_EQ(silent.ping().outcome, Outcome::unauthorized);
  EXPECT_FALSE(silent.is_open());
}

TEST(Connection, ASecretWhereNoneIsAskedForIsRefused) {
  const TestServer server;
  ConnectOptions options = connect_options();
  options.auth_token = "s3cret";
  EXPECT_EQ(Connection::open(server.address(), options).outcome, Outcome::unauthorized);
}

TEST(Connection, FindsAServerByName) {
  Options options = line_options();
  options.host.clear();
  const TestServer server(options);
  auto opened = Connection::open({"localhost", server.port()}, connect_options());
  ASSERT_TRUE(opened) << describe(opened);
  EXPECT_TRUE(opened->ping());
}

// To close would be to release.
TEST(Connection, HoldsOnWhileTheServerStops) {
  TestServer server;
  Connection connection = server.open();
  const auto grant = connection.acquire({.key = "k", .lease = 30s});
  ASSERT_TRUE(grant) << describe(grant);
  server.server().drain();
  auto other = connection.acquire({.key = "k"});
  while (other.outcome == Outcome::timeout) other = connection.acquire({.key = "k"});
  EXPECT_EQ(other.outcome, Outcome::draining);
  const LineHold hold{.key = "k", .token = grant->token};
  EXPECT_EQ(connection.renew(hold)->remaining, 30s);
  EXPECT_TRUE(connection.release(hold));
  EXPECT_EQ(connection.ping().outcome, Outcome::disconnected);
}

TEST(Connection, ThatIsClosedAnswersSo) {
  const TestServer server;
  Connection connection = server.open();
  Connection moved = std::move(connection);
  EXPECT_FALSE(connection.is_open());
  EXPECT_EQ(connection.ping().outcome, Outcome::disconnected);
  EXPECT_EQ(connection.acquire({.key = ""}).outcome, Outcome::invalid);
  EXPECT_EQ(connection.next_signal(1s).outcome, Outcome::disconnected);
  moved.close();
  EXPECT_EQ(moved.stats().outcome, Outcome::disconnected);
  EXPECT_EQ(moved.next_signal(1s).outcome, Outcome::disconnected);
}

}  // namespace
}  // namespace lockd::client
