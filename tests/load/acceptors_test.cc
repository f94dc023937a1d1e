// Who is let in: protected mode, and exact caps on connections.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "load/swarm.h"
#include "support/outer_addresses.h"
#include "support/server_process.h"

namespace lockd {
namespace {

// Of many loops one accepts and one serves; the others sleep on.
TEST(Arrival, WakesNobodyWhomItDoesNotConcern) {
  constexpr std::size_t kLoops = 64;
  constexpr std::size_t kClients = 300;
  const ServerProcess server({"--threads", std::to_string(kLoops)});
  ASSERT_EQ(server.connect().ask(kPing), "ok");
  const auto began = Swarm::Clock::now();
  const std::size_t before = server.sleeps();
  for (std::size_t i = 0; i < kClients; ++i) ASSERT_EQ(server.connect().ask(kPing), "ok");
  const std::size_t sleeps = server.sleeps() - before;
  // Each loop looks around twenty times a second by itself.
  const std::chrono::duration<double> took = Swarm::Clock::now() - began;
  const auto ticks = static_cast<std::size_t>((took.count() + 1) * 20 * kLoops);
  std::printf("%zu clients: %zu times a thread went to sleep, up to %zu of them for ticks\n",
              kClients, sleeps, ticks);
  EXPECT_LT(sleeps, ticks + kClients * 16);
}

TEST(Arrival, IsSpreadOverTheLoops) {
  const ServerProcess server({"--threads", "4"});
  const std::vector<std::size_t> before = server.watched_by_loops();
  Swarm crowd(server.port());
  ASSERT_TRUE(crowd.connect(100));
  for (std::size_t i = 0; i < crowd.size(); ++i) ASSERT_EQ(crowd.ask(i, kPing), "ok");
  std::vector<std::size_t> all = server.watched_by_loops();
  ASSERT_EQ(all.size(), before.size());
  std::size_t loops = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == before[i]) continue;  // Asio's own
    EXPECT_EQ(all[i] - before[i], 25U);
    ++loops;
  }
  EXPECT_EQ(loops, 4U);
}

class ProtectedMode : public testing::Test {
 protected:
  void SetUp() override {
    if (addresses_.empty()) GTEST_SKIP() << "this machine has no address but loopback";
  }
  const std::vector<std::string> addresses_ = outer_addresses();
};

TEST_F(ProtectedMode, OnlyLoopbackIsServed) {
  const ServerProcess server;
  for (const std::string& address : addresses_) {
    Swarm outside(server.port());
    ASSERT_TRUE(outside.connect(20, {.to = address}));
    // Half of them speak first: it makes no difference.
    for (std::size_t i = 0; i < outside.size(); i += 2) outside.send(i, kPing);
    for (std::size_t i = 0; i < outside.size(); ++i) {
      EXPECT_EQ(outside.read_line(i), "error_auth") << address;
      EXPECT_EQ(outside.read_line(i), kEnd) << address;
    }
  }
  Swarm inside(server.port());
  for (const char* address : {"127.0.0.1", "127.9.8.7"}) {
    ASSERT_TRUE(inside.connect(1, {.to = address}));
    EXPECT_EQ(inside.ask(inside.size() - 1, kPing), "ok") << address;
  }
  ASSERT_TRUE(server.comes_to_log("protected mode: "));
  const std::string log = server.log();
  const std::size_t said = log.find("protected mode: ");
  EXPECT_NE(log.find("--auth-token", said), std::string::npos);
}

TEST_F(ProtectedMode, AChosenHostEndsIt) {
  const bool ipv6 = std::any_of(addresses_.begin(), addresses_.end(), [](const std::string& text) {
    return text.find(':') != std::string::npos;
  });
  const ServerProcess server({"--host", ipv6 ? "::" : "0.0.0.0"});
  for (const std::string& address : addresses_) {
    Swarm outside(server.port());
    ASSERT_TRUE(outside.connect(1, {.to = address}));
    EXPECT_EQ(outside.ask(0, kPing), "ok") << address;
  }
}

TEST_F(ProtectedMode, ATokenEndsIt) {
  const ServerProcess server({"--auth-token", "sesame"});
  for (const std::string& address : addresses_) {
    Swarm outside(server.port());
    ASSERT_TRUE(outside.connect(2, {.to = address}));
    EXPECT_EQ(outside.ask(0, request("auth", "", "sesame")), "ok") << address;
    EXPECT_EQ(outside.ask(0, kPing), "ok") << address;
    EXPECT_EQ(outside.ask(1, kPing), "error_auth") << address;
  }
}

// How many of a swarm are served; the others are closed without a byte.
std::size_t count_served(Swarm& swarm) {
  std::size_t served = 0;
  for (std::size_t i = 0; i < swarm.size(); ++i) swarm.send(i, kPing);
  for (std::size_t i = 0; i < swarm.size(); ++i) {
    const std::string line = swarm.read_line(i);
    EXPECT_TRUE(line == "ok" || line == kEnd || line == kReset) << line;
    if (line == "ok") ++served;
  }
  return served;
}

std::string source_address(std::size_t number) { return "127.0.1." + std::to_string(1 + number); }

// They come from several threads at once, and are accepted by several loops.
TEST(Caps, ConnectionsAreCountedExactly) {
  constexpr std::size_t kCap = 37;
  constexpr std::size_t kThreads = 4;
  const ServerProcess server({"--threads", "4", "--max-connections", std::to_string(kCap)});
  LineClient observer = server.connect();  // one of them
  for (int round = 0; round < 20; ++round) {
    await_stats(observer, "{\"connections\":1,");
    std::vector<std::unique_ptr<Swarm>> swarms;
    std::vector<std::thread> threads;
    std::atomic<std::size_t> served{0};
    for (std::size_t i = 0; i < kThreads; ++i) {
      swarms.push_back(std::make_unique<Swarm>(server.port()));
      threads.emplace_back([&served, &swarm = *swarms.back()] {
        if (swarm.connect(50)) served += count_served(swarm);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(served, kCap - 1) << "in round " << round;
  }
}

TEST(Caps, ConnectionsFromOneAddressAreCountedExactly) {
  constexpr std::size_t kCap = 3;
  constexpr std::size_t kAddresses = 20;
  const ServerProcess server({"--threads", "4", "--max-connections-per-ip", std::to_string(kCap)});
  std::vector<std::unique_ptr<Swarm>> swarms;
  for (std::size_t i = 0; i < kAddresses; ++i) {
    swarms.push_back(std::make_unique<Swarm>(server.port()));
    ASSERT_TRUE(swarms.back()->connect(10, {.from = source_address(i)}));
  }
  for (const auto& swarm : swarms) EXPECT_EQ(count_served(*swarm), kCap);
  // Who leaves makes room for one more, from the same address and no other.
  Swarm& first = *swarms.front();
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first.is_open(i)) {
      first.close(i);
      break;
    }
  }
  Swarm& second = *swarms.back();
  ASSERT_TRUE(second.connect(1, {.from = source_address(kAddresses - 1)}));
  EXPECT_NE(second.ask(second.size() - 1, kPing), "ok");
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  std::string reply;
  do {
    ASSERT_TRUE(first.connect(1, {.from = source_address(0)}));
    reply = first.ask(first.size() - 1, kPing);
  } while (reply != "ok" && LineClient::Clock::now() < deadline);
  EXPECT_EQ(reply, "ok");
  ASSERT_TRUE(first.connect(1, {.from = source_address(0)}));
  EXPECT_NE(first.ask(first.size() - 1, kPing), "ok");
}

}  // namespace
}  // namespace lockd
