// Signals that arrive whenever they like: between replies, inside a wait, byte by byte, too many.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "lockd/client/connection.h"
#include "support/lying_server.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

constexpr const char* kGrant = "ok 00031517a4824c9a0123456789abcdef 30\n";

std::string next(Connection& connection, Duration wait = 60s) {
  const auto signal = connection.next_signal(wait);
  return signal ? signal->channel + "=" + signal->payload : std::string(describe(signal.outcome));
}

TEST(Pushes, OfTheLargestSizeArrive) {
  const std::string payload(65'536 - 5 - 3, 'p');
  const LyingServer server([&](Peer& peer) {
    peer.send("sig a.b " + payload + "\n");
    peer.stay_silent();
  });
  Connection connection = connect(server);
  EXPECT_EQ(next(connection), "a.b=" + payload);
}

TEST(Pushes, ThatNobodyAsksForAreDroppedFromTheOldest) {
  constexpr int kSurplus = 10;
  constexpr int kAll = static_cast<int>(Connection::kSignalsMax) + kSurplus;
  const LyingServer server([](Peer& peer) {
    while (peer.read_request()) {
      for (int i = 0; i < kAll; ++i) peer.send("sig a " + std::to_string(i) + "\n");
      peer.send("ok\n");
    }
  });
  Connection connection = connect(server);
  EXPECT_TRUE(connection.ping());
  EXPECT_EQ(connection.signals_dropped(), static_cast<std::uint64_t>(kSurplus));
  for (int i = kSurplus; i < kAll; ++i) ASSERT_EQ(next(connection), "a=" + std::to_string(i));
}

// More than is kept of signals, and all at once.
TEST(Pushes, OfAStreamAreAllThereForWhoAsksForNothingElse) {
  constexpr int kAll = 5'000;
  const LyingServer server([](Peer& peer) {
    const auto asked = peer.read_request();
    peer.send(asked->command + asked->key == "apiGET /v1/events" ? "ok 200 {}\n" : "error\n");
    std::string events;
    for (int i = 0; i < kAll; ++i) events += "event {\"n\":" + std::to_string(i) + "}\n";
    peer.send(events);
    peer.stay_silent();
  });
  Connection connection = connect(server);
  const auto begun = connection.api({.method = "GET", .path = "/v1/events"});
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->status, 200u);
  for (int i = 0; i < kAll; ++i) {
    ASSERT_EQ(*connection.next_event(60s), "{\"n\":" + std::to_string(i) + "}");
  }
  EXPECT_EQ(connection.next_event(10ms).outcome, Outcome::timeout);
}

TEST(Pushes, NoneInTimeIsATimeoutAndNotEarly) {
  const LyingServer server([](Peer& peer) {
    while (peer.read_request()) peer.send("ok\n");
  });
  Connection connection = connect(server);
  const auto before = BootClock::now();
  EXPECT_EQ(connection.next_signal(50ms).outcome, Outcome::timeout);
  EXPECT_GE(BootClock::now() - before, 50ms);
  EXPECT_TRUE(connection.is_open());
  EXPECT_EQ(connection.next_signal(0s).outcome, Outcome::timeout);
  EXPECT_TRUE(connection.ping());
}

TEST(Pushes, BeforeTheEndAreNotLostToIt) {
  const LyingServer server([](Peer& peer) {
    if (peer.read_request()) peer.send("ok\nsig a 1\nsig a 2\nsig a 3");
  });
  Connection connection = connect(server);
  EXPECT_TRUE(connection.ping());
  EXPECT_EQ(next(connection), "a=1");
  EXPECT_EQ(next(connection), "a=2");
  EXPECT_EQ(connection.next_signal(60s).outcome, Outcome::disconnected);
}

TEST(Pushes, AServerIsPingedHoweverShortTheWaits) {
  std::atomic<bool> pinged = false;
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      if (asked->command == "ping") pinged = true;
      peer.send("ok\n");
    }
  });
  Connection connection = connect(server);
  EXPECT_TRUE(connection.listen("a.>"));
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(connection.next_signal(100ms).outcome, Outcome::timeout);
    return pinged.load();
  }));
}

}  // namespace
}  // namespace lockd::client
