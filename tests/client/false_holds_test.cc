// A held lock and a server that lies: nobody believes in a lock that is gone.
#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <thread>

#include "client/false_holds_fixture.h"

namespace lockd::client {
namespace {

TEST(FalseHolds, CertaintyIsCountedFromWhenTheRequestWasSent) {
  std::mutex mutex;
  BootClock::time_point received;
  const LyingServer server([&](Peer& peer) {
    if (auto asked = peer.read_request()) {
      {
        const std::lock_guard lock(mutex);
        received = asked->at;
      }
      std::this_thread::sleep_for(100ms);
      peer.send(grant(kLong));
      peer.stay_silent();
    }
  });
  Client client(options_for(server));
  Told told;
  const auto before = BootClock::now();
  const HeldLock lock = acquire(client, told);
  const auto expires_at = lock.expires_at();
  EXPECT_GE(expires_at, before + kLong);
  {
    const std::lock_guard lock_received(mutex);
    EXPECT_LE(expires_at, received + kLong);
  }
  ASSERT_TRUE(eventually([&] { return told.times == 1; }));
  EXPECT_FALSE(lock.is_held());
  EXPECT_EQ(lock.token(), "");
  EXPECT_EQ(lock.loss()->outcome, Outcome::unsure);
  EXPECT_TRUE(lock.lost().stop_requested());
  EXPECT_EQ(told.status.outcome, Outcome::unsure);
  EXPECT_GE(told.at, expires_at) << "told before it was over";
}

TEST(FalseHolds, AServerThatReleasedWithTheConnectionIsBelievedAtOnce) {
  const LyingServer server(renewing(kLong, [](Peer& peer, const Asked&) {
    if (peer.number() == 0) {
      peer.cut();
    } else {
      peer.send("error\n");
    }
  }));
  Client client(options_for(server));
  Told told;
  HeldLock lock = acquire(client, told);
  ASSERT_TRUE(eventually([&] { return told.times == 1; }));
  EXPECT_EQ(told.status.outcome, Outcome::lost);
  EXPECT_FALSE(lock.is_held());
  EXPECT_EQ(lock.release().outcome, Outcome::lost);
}

TEST(FalseHolds, AConnectionThatBreaksWhileNothingIsAskedIsNoticed) {
  const LyingServer server([](Peer& peer) {
    const auto asked = peer.read_request();
    if (!asked) return;
    // The lease is long: no renewal would be due for a quarter of an hour.
    if (asked->command == "l") peer.send(grant(3600s));
    if (asked->command == "n") peer.send("error\n");
  });
  Client client(options_for(server));
  Told told;
  auto lock = client.acquire({.key = "k", .lease = 3600s, .on_lost = told.callback()});
  ASSERT_TRUE(lock);
  ASSERT_TRUE(eventually([&] { return told.times == 1; }));
  EXPECT_EQ(told.status.outcome, Outcome::lost);
}

TEST(FalseHolds, AConnectionThatBreaksWithTheGrantIsNoticed) {
  const LyingServer server([](Peer& peer) {
    const auto asked = peer.read_request();
    if (!asked) return;
    // In one piece, so that both are there before anybody watches the connection.
    if (asked->command == "l") peer.send(grant(3600s) + "error_draining\n");
    if (asked->command == "n") peer.send("error\n");
  });
  Client client(options_for(server));
  Told told;
  const HeldLock lock = acquire(client, told);
  ASSERT_TRUE(eventually([&] { return told.times == 1; }));
  EXPECT_EQ(told.status.outcome, Outcome::lost);
}

TEST(FalseHolds, AServerThatIsGoneLeavesItUnsure) {
  // A grant that comes late is renewed before it is handed out.
  std::optional<LyingServer> server(
      renewing(kShort, [](Peer& peer, const Asked&) { peer.send("ok 1\n"); }));
  Client client(options_for(*server));
  Told told;
  const HeldLock lock = acquire(client, told);
  server.reset();
  ASSERT_TRUE(eventually([&] { return told.times == 1; }));
  EXPECT_EQ(told.status.outcome, Outcome::unsure);
  EXPECT_GE(told.at, lock.expires_at());
}

TEST(FalseHolds, AGrantThatRanOutOnTheWayIsNotHandedOut) {
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      if (asked->command == "l") std::this_thread::sleep_for(600ms);
      peer.send(asked->command == "l" ? grant(kShort) : "error\n");
    }
  });
  Client client(options_for(server));
  const auto lock = client.acquire({.key = "k", .wait = 60s, .lease = 1s});
  EXPECT_EQ(lock.outcome, Outcome::lease_expired);
  EXPECT_FALSE(lock->is_held());
}

}  // namespace
}  // namespace lockd::client
