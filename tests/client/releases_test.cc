// Releases at a server that lies: neither held up nor overtaken, and tried where they can arrive.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <string>

#include "client/false_holds_fixture.h"

namespace lockd::client {
namespace {

TEST(Releases, ASilentServerDoesNotHoldUpARelease) {
  const LyingServer server([](Peer& peer) {
    if (peer.read_request()) peer.send(grant(3600s));
    peer.stay_silent();
  });
  ClientOptions options = options_for(server);
  options.release_timeout = 50ms;
  Client client(options);
  auto lock = client.acquire({.key = "k", .lease = 3600s});
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->release().outcome, Outcome::no_reply);
  EXPECT_FALSE(lock->is_held());
  EXPECT_EQ(lock->release().outcome, Outcome::no_reply);
}

TEST(Releases, AReleaseGoesBehindTheRenewalUnderWayAndNoneFollows) {
  std::mutex mutex;
  std::string said;
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      {
        const std::lock_guard lock(mutex);
        said += asked->command;
      }
      if (asked->command == "l") peer.send(grant(kLong));
      if (asked->command == "r") peer.send("ok 8\nok\n");  // to both
    }
    const std::lock_guard lock(mutex);
    said += ".";
  });
  Client client(options_for(server));
  Told told;
  HeldLock lock = acquire(client, told);
  const auto has_said = [&](const char* all) {
    const std::lock_guard guard(mutex);
    return said == all;
  };
  ASSERT_TRUE(eventually([&] { return has_said("ln"); }));
  EXPECT_EQ(lock.release().outcome, Outcome::ok);
  EXPECT_TRUE(eventually([&] { return has_said("lnr."); })) << said;
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(told.times, 0);
}

TEST(Releases, ASecondConnectionReleasesWhatTheFirstCannot) {
  std::atomic<bool> released = false;
  const LyingServer server([&](Peer& peer) {
    const auto asked = peer.read_request();
    if (!asked) return;
    if (peer.number() == 0) peer.send(grant(3600s));
    if (peer.number() == 0) peer.read_request();  // the release, which is cut
    if (asked->command == "r") {
      released = true;
      peer.send("ok\n");
    }
  });
  Client client(options_for(server));
  auto lock = client.acquire({.key = "k", .lease = 3600s});
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->release().outcome, Outcome::ok);
  EXPECT_TRUE(released);
}

}  // namespace
}  // namespace lockd::client
