// A held lock and a server that lies: nobody believes in a lock that is gone.
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "client/false_holds_fixture.h"

namespace lockd::client {
namespace {

// The grant is 100 ms under way, which leaves a slow machine most of a second until the client
// would renew it before it is handed out.
constexpr auto kLease = 3s;

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
      peer.send(grant(kLease));
      peer.stay_silent();
    }
  });
  Client client(options_for(server));
  Told told;
  const auto before = BootClock::now();
  const HeldLock lock = acquire(client, told);
  const auto expires_at = lock.expires_at();
  EXPECT_GE(expires_at, before + kLease);
  {
    const std::lock_guard lock_received(mutex);
    EXPECT_LE(expires_at, received + kLease);
  }
  ASSERT_TRUE(eventually([&] { return told.times == 1; }));
  EXPECT_FALSE(lock.is_held());
  EXPECT_EQ(lock.token(), "");
  EXPECT_EQ(lock.loss()->outcome, Outcome::unsure);
  EXPECT_TRUE(lock.lost().stop_requested());
  EXPECT_EQ(told.status.outcome, Outcome::unsure);
  EXPECT_GE(told.at, expires_at) << "told before it was over";
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

}  // namespace
}  // namespace lockd::client
