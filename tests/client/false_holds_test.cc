// A held lock and a server that lies: nobody believes in a lock that is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/lying_server.h"
#include "lockd/client/client.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

constexpr const char* kToken = "00031517a4824c9a0123456789abcdef";
// Where a lease has to run out it is short. Where it has to be renewed in time it leaves a slow
// machine a second or two.
constexpr auto kShort = 1s;
constexpr auto kLong = 4s;

std::string grant(std::chrono::seconds lease) {
  return std::string("ok ") + kToken + " " + std::to_string(lease.count()) + "\n";
}

// How the owner was told.
struct Told {
  std::atomic<int> times = 0;
  std::mutex mutex;
  Status status;
  BootClock::time_point at;

  std::function<void(const Status&)> callback() {
    return [this](const Status& how) {
      const std::lock_guard lock(mutex);
      status = how;
      at = BootClock::now();
      ++times;
    };
  }
};

ClientOptions options_for(const LyingServer& server) {
  return {.servers = {server.address()},
          .connect = {.connect_timeout = 60s, .reply_timeout = 60s},
          .release_timeout = 1s};
}

HeldLock acquire(Client& client, Told& told) {
  auto acquired = client.acquire({.key = "k", .on_lost = told.callback()});
  EXPECT_TRUE(acquired) << describe(acquired);
  return std::move(*acquired);
}

// Grants what is asked for; renewals are the test's.
LyingServer::Script renewing(std::chrono::seconds lease,
                             std::function<void(Peer&, const Asked&)> renew) {
  return [lease, renew = std::move(renew)](Peer& peer) {
    while (auto asked = peer.read_request()) {
      if (asked->command == "l") peer.send(grant(lease));
      if (asked->command == "r") peer.send("ok\n");
      if (asked->command == "n") renew(peer, *asked);
    }
  };
}

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

TEST(FalseHolds, ARenewalConfirmedTooLateRevivesNothing) {
  std::atomic<bool> confirmed = false;
  const LyingServer server(renewing(kShort, [&](Peer& peer, const Asked&) {
    std::this_thread::sleep_for(1500ms);
    confirmed = true;
    peer.send("ok 1\n");
  }));
  Client client(options_for(server));
  Told told;
  const HeldLock lock = acquire(client, told);
  while (!confirmed) {
    const auto now = BootClock::now();
    if (lock.is_held()) {
      EXPECT_LT(now, lock.expires_at());
    }
    std::this_thread::sleep_for(1ms);
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(lock.is_held());
    std::this_thread::sleep_for(1ms);
  }
  ASSERT_TRUE(eventually([&] { return told.times == 1; }));
}

TEST(FalseHolds, ARenewalCutAtAnyByteIsTriedOnANewConnection) {
  const std::string reply = "ok 4\n";
  const int holds = static_cast<int>(reply.size());
  std::mutex mutex;
  std::map<std::string, int> renewed;  // by key
  const LyingServer server(renewing(kLong, [&](Peer& peer, const Asked& asked) {
    EXPECT_EQ(asked.argument, std::string(kToken) + " 4");
    if (peer.number() < holds) {
      peer.send(reply.substr(0, static_cast<std::size_t>(peer.number())));
      peer.cut();
      return;
    }
    peer.send(reply);
    const std::lock_guard lock(mutex);
    ++renewed[asked.key];
  }));
  Client client(options_for(server));
  Told told;
  std::vector<HeldLock> locks;
  for (int i = 0; i < holds; ++i) {
    auto lock = client.acquire({.key = "k" + std::to_string(i), .on_lost = told.callback()});
    ASSERT_TRUE(lock) << describe(lock);
    locks.push_back(std::move(*lock));
  }
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return renewed.size() == locks.size() &&
           std::all_of(renewed.begin(), renewed.end(), [](const auto& r) { return r.second > 1; });
  }));
  for (HeldLock& lock : locks) {
    EXPECT_TRUE(lock.is_held()) << lock.key();
    EXPECT_EQ(lock.release().outcome, Outcome::ok) << lock.key();
  }
  EXPECT_EQ(told.times, 0);
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
  std::optional<LyingServer> server(renewing(kShort, [](Peer&, const Asked&) {}));
  Client client(options_for(*server));
  Told told;
  const HeldLock lock = acquire(client, told);
  server.reset();
  ASSERT_TRUE(eventually([&] { return told.times == 1; }));
  EXPECT_EQ(told.status.outcome, Outcome::unsure);
  EXPECT_GE(told.at, lock.expires_at());
}

TEST(FalseHolds, AServerThatComesBackRenews) {
  std::atomic<int> renewed = 0;
  const auto script = renewing(kLong, [&](Peer& peer, const Asked&) {
    peer.send("ok 60\n");
    ++renewed;
  });
  std::optional<LyingServer> server(script);
  const Address address = server->address();
  Client client(options_for(*server));
  Told told;
  auto acquired = client.acquire({.key = "k", .lease = 60s, .on_lost = told.callback()});
  ASSERT_TRUE(acquired);
  EXPECT_EQ(acquired->lease(), kLong) << "of what was asked for and what was given the shorter";
  server.emplace(script, address.port);
  ASSERT_TRUE(eventually([&] { return renewed > 0 || told.times > 0; }));
  EXPECT_EQ(told.times, 0);
  EXPECT_TRUE(acquired->is_held());
}

TEST(FalseHolds, AGrantThatComesLateIsRenewedBeforeItIsHandedOut) {
  std::atomic<bool> renewed = false;
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      if (asked->command == "l") {
        std::this_thread::sleep_for(600ms);
        peer.send(grant(kShort));
      } else {
        renewed = true;
        peer.send(asked->command == "n" ? "ok 1\n" : "ok\n");
      }
    }
  });
  Client client(options_for(server));
  const auto lock = client.acquire({.key = "k", .wait = 60s, .lease = 1s});
  ASSERT_TRUE(lock) << describe(lock);
  EXPECT_TRUE(renewed);
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

TEST(FalseHolds, ASilentServerDoesNotHoldUpARelease) {
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

TEST(FalseHolds, AReleaseGoesBehindTheRenewalUnderWayAndNoneFollows) {
  std::mutex mutex;
  std::string said;
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      {
        const std::lock_guard lock(mutex);
        said += asked->command;
      }
      if (asked->command == "l") peer.send(grant(kLong));
      if (asked->command == "r") peer.send("ok 4\nok\n");  // to both
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

TEST(FalseHolds, ASecondConnectionReleasesWhatTheFirstCannot) {
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

TEST(FalseHolds, WhoDoesNotLeadIsAskedAgain) {
  std::atomic<int> asked = 0;
  const LyingServer server(renewing(kLong, [&](Peer& peer, const Asked&) {
    peer.send(++asked < 3 ? "error_not_leader -\n" : "ok 4\n");
  }));
  Client client(options_for(server));
  Told told;
  const HeldLock lock = acquire(client, told);
  ASSERT_TRUE(eventually([&] { return asked >= 4 || told.times > 0; }));
  EXPECT_EQ(told.times, 0);
  EXPECT_EQ(server.connections(), 1);
}

}  // namespace
}  // namespace lockd::client
