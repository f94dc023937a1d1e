// A server that lies: it cuts, dawdles, falls silent, talks nonsense or too much. No call takes
// that for an answer, and none waits for ever.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "lockd/client/connection.h"
#include "support/loopback.h"
#include "support/lying_server.h"
#include "support/silent_port.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

constexpr const char* kToken = "00031517a4824c9a0123456789abcdef";

// One call of each kind, and what a server answers to it.
struct Exchange {
  const char* name;
  std::string reply;
  std::function<Status(Connection&)> call;
};

const std::vector<Exchange>& exchanges() {
  static const std::string grant = std::string(kToken) + " 30\n";
  static const std::vector<Exchange> all{
      {"acquire", "ok " + grant,
       [](Connection& c) -> Status { return c.acquire({.key = "k", .wait = 5s}); }},
      {"release", "ok\n", [](Connection& c) { return c.release({.key = "k", .token = kToken}); }},
      {"renew", "ok 30\n",
       [](Connection& c) -> Status { return c.renew({.key = "k", .token = kToken}); }},
      {"enqueue", "acquired " + grant,
       [](Connection& c) -> Status { return c.enqueue({.key = "k"}); }},
      {"await_turn", "ok " + grant,
       [](Connection& c) -> Status { return c.await_turn({.key = "k", .wait = 5s}); }},
      {"listen", "ok\n", [](Connection& c) { return c.listen("a.>"); }},
      {"unlisten", "ok\n", [](Connection& c) { return c.unlisten("a.>"); }},
      {"publish", "ok 3\n", [](Connection& c) -> Status { return c.publish("a.b", "payload"); }},
      {"stats", "ok {\"connections\":1}\n", [](Connection& c) -> Status { return c.stats(); }},
      {"ping", "ok\n", [](Connection& c) { return c.ping(); }},
      {"barrier", "ok\n", [](Connection& c) { return c.barrier(); }},
  };
  return all;
}

TEST(Lies, AReplyCutAtAnyByteIsNoAnswer) {
  for (const Exchange& exchange : exchanges()) {
    const LyingServer server([&](Peer& peer) {
      if (!peer.read_request()) return;
      peer.send(exchange.reply.substr(0, static_cast<std::size_t>(peer.number())));
      // What was sent before a reset may be lost with it: that is less than was cut.
      if (peer.number() % 2 == 1) peer.end_by_reset();
    });
    for (std::size_t cut = 0; cut < exchange.reply.size(); ++cut) {
      Connection connection = connect(server);
      EXPECT_EQ(exchange.call(connection).outcome, Outcome::disconnected)
          << exchange.name << " cut after " << cut;
      EXPECT_FALSE(connection.is_open());
      EXPECT_EQ(connection.ping().outcome, Outcome::disconnected);
    }
    Connection whole = connect(server);
    EXPECT_EQ(exchange.call(whole).outcome, Outcome::ok) << exchange.name;
  }
}

TEST(Lies, EveryRefusalIsAValueAndLeavesTheConnectionOpen) {
  for (const char* word : {"error", "error_max_locks", "error_of_a_later_version"}) {
    const LyingServer server([&](Peer& peer) {
      while (peer.read_request()) peer.send(std::string(word) + "\r\n");
    });
    for (const Exchange& exchange : exchanges()) {
      Connection connection = connect(server);
      const Status status = exchange.call(connection);
      EXPECT_FALSE(status) << exchange.name;
      EXPECT_NE(status.outcome, Outcome::garbled) << exchange.name;
      EXPECT_TRUE(connection.is_open());
    }
  }
}

TEST(Lies, WhoDoesNotLeadSaysWhoDoes) {
  const LyingServer server([](Peer& peer) {
    while (peer.read_request()) peer.send("error_not_leader 10.0.0.7:6388\n");
  });
  Connection connection = connect(server);
  const auto refused = connection.acquire({.key = "k"});
  EXPECT_EQ(refused.outcome, Outcome::not_leader);
  EXPECT_EQ(refused.leader, "10.0.0.7:6388");
  EXPECT_TRUE(connection.is_open());
}

TEST(Lies, WhoNeverAnswersIsGivenUpAndNotEarly) {
  const LyingServer server([](Peer& peer) { peer.stay_silent(); });
  for (const Exchange& exchange : exchanges()) {
    Connection connection = connect(server, {.connect_timeout = 60s, .reply_timeout = 50ms});
    const bool waits = std::string_view(exchange.name) == "acquire" ||
                       std::string_view(exchange.name) == "await_turn";
    if (waits) continue;  // asked for five seconds: see below
    const auto before = BootClock::now();
    EXPECT_EQ(exchange.call(connection).outcome, Outcome::no_reply) << exchange.name;
    EXPECT_GE(BootClock::now() - before, 50ms);
    EXPECT_FALSE(connection.is_open());
  }
}

TEST(Lies, WhoNeverShakesHandsIsGivenUp) {
  const LyingServer server([](Peer& peer) { peer.stay_silent(); });
  const auto before = BootClock::now();
  const auto opened =
      Connection::open(server.address(), {.tls = TlsOptions{}, .connect_timeout = 100ms});
  EXPECT_EQ(opened.outcome, Outcome::unreachable) << describe(opened);
  EXPECT_GE(BootClock::now() - before, 100ms);
}

TEST(Lies, WhoTakesNoConnectionIsGivenUp) {
  // A queue of one that nobody empties: once it is full, further requests to connect are dropped.
  const int listener = listen_on_loopback(0, 0);
  std::vector<Connection> taken;
  Outcome last = Outcome::ok;
  for (int i = 0; i < 8 && last == Outcome::ok; ++i) {
    const auto before = BootClock::now();
    auto opened =
        Connection::open({"127.0.0.1", port_of(listener)}, {.name = "", .connect_timeout = 100ms});
    last = opened.outcome;
    if (!opened) {
      EXPECT_GE(BootClock::now() - before, 100ms);
    }
    taken.push_back(std::move(*opened));
  }
  EXPECT_EQ(last, Outcome::unreachable);
  ::close(listener);
}

TEST(Lies, NobodyThereIsSaidAtOnce) {
  const SilentPort silent;
  const auto opened = Connection::open({"127.0.0.1", silent.number()}, patient());
  EXPECT_EQ(opened.outcome, Outcome::unreachable);
  EXPECT_NE(opened.detail.find("refused"), std::string::npos) << opened.detail;
  EXPECT_EQ(Connection::open({"no-such-host.invalid", 1}, patient()).outcome, Outcome::unreachable);
}

TEST(Lies, AStopTokenEndsAnyCall) {
  const LyingServer server([](Peer& peer) { peer.stay_silent(); });
  {
    std::stop_source source;
    Connection connection = connect(server);
    std::jthread stopper([&] {
      std::this_thread::sleep_for(20ms);
      source.request_stop();
    });
    const auto acquired = connection.acquire({.key = "k", .wait = 3600s}, source.get_token());
    EXPECT_EQ(acquired.outcome, Outcome::cancelled);
    EXPECT_FALSE(connection.is_open());
  }
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(Connection::open(server.address(), {}, stopped.get_token()).outcome,
            Outcome::cancelled);
  std::stop_source source;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(20ms);
    source.request_stop();
  });
  const ConnectOptions secret{.auth_token = "s3cret", .connect_timeout = 3600s};
  EXPECT_EQ(Connection::open(server.address(), secret, source.get_token()).outcome,
            Outcome::cancelled);
}

}  // namespace
}  // namespace lockd::client
