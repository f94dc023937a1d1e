// Renewals at a server that lies: tried again while there is time, and never believed too late.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "client/false_holds_fixture.h"

namespace lockd::client {
namespace {

TEST(Renewals, ARenewalConfirmedTooLateRevivesNothing) {
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

TEST(Renewals, ARenewalCutAtAnyByteIsTriedOnANewConnection) {
  const std::string reply = "ok 8\n";
  const int holds = static_cast<int>(reply.size());
  std::mutex mutex;
  std::map<std::string, int> renewed;  // by key
  const LyingServer server(renewing(kLong, [&](Peer& peer, const Asked& asked) {
    EXPECT_EQ(asked.argument, std::string(kToken) + " 8");
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

TEST(Renewals, AServerThatComesBackRenews) {
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

// It was free, however short the wait and however long the way.
TEST(Renewals, AWaitShorterThanTheWayThereIsATry) {
  const LyingServer server([](Peer& peer) {
    while (auto asked = peer.read_request()) {
      if (asked->command == "l") std::this_thread::sleep_for(200ms);
      peer.send(asked->command == "l" ? grant(kLong) : "ok\n");
    }
  });
  Client client(options_for(server));
  const auto lock = client.acquire({.key = "k", .wait = 10ms});
  EXPECT_TRUE(lock) << describe(lock);
}

TEST(Renewals, AGrantThatComesLateIsRenewedBeforeItIsHandedOut) {
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

TEST(Renewals, AGrantThatIsGivenUpBeforeItIsHandedOutIsReleased) {
  std::stop_source source;
  std::atomic<bool> released = false;
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      if (asked->command == "l") {
        std::this_thread::sleep_for(600ms);
        peer.send(grant(kShort));
      }
      if (asked->command == "n") source.request_stop();
      if (asked->command == "r" && asked->argument == kToken) released = true;
    }
  });
  Client client(options_for(server));
  const auto lock = client.acquire({.key = "k", .wait = 60s, .lease = 1s}, source.get_token());
  EXPECT_EQ(lock.outcome, Outcome::cancelled) << describe(lock);
  EXPECT_TRUE(eventually([&] { return released.load(); })) << "auto-release may be off";
}

TEST(Renewals, AGrantThatComesLateIsRenewedOnANewConnection) {
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      if (asked->command == "l") {
        std::this_thread::sleep_for(600ms);
        peer.send(grant(kShort));
      } else if (peer.number() > 0) {
        peer.send(asked->command == "n" ? "ok 1\n" : "ok\n");
      } else {
        return;
      }
    }
  });
  Client client(options_for(server));
  const auto lock = client.acquire({.key = "k", .wait = 60s, .lease = 1s});
  EXPECT_TRUE(lock) << describe(lock);
}

TEST(Renewals, WhoDoesNotLeadIsAskedAgain) {
  std::atomic<int> asked = 0;
  const LyingServer server(renewing(kLong, [&](Peer& peer, const Asked&) {
    peer.send(++asked < 3 ? "error_not_leader -\n" : "ok 8\n");
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
