// Signals to very many, and clients that leave very much behind.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/testing/test_size.h"
#include "load/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

struct Flood {
  const char* what;
  std::size_t listeners;
  std::size_t publishers;
  std::size_t payload;
  bool in_groups;  // every second of the listeners is in a group of its own
  std::size_t kept_mib_max;
};

class AbuseBySignals : public testing::TestWithParam<Flood> {};

// Publishers never pause, and listeners read all that the server sends. The server bounds what one
// loop keeps for another.
TEST_P(AbuseBySignals, LeasesAreKeptAndMemoryIsBounded) {
  const Flood& flood = GetParam();
  const ServerProcess server({"--threads", "4"});
  const std::size_t base_kib = server.memory_kib();
  Swarm listeners(server.port());
  ASSERT_TRUE(listeners.connect(flood.listeners));
  for (std::size_t i = 0; i < flood.listeners; ++i) {
    const std::string group = flood.in_groups && i % 2 == 0 ? "group " + std::to_string(i) : "";
    ASSERT_EQ(listeners.ask(i, request("listen", "a.>", group)), "ok");
  }
  Swarm publishers(server.port());
  ASSERT_TRUE(publishers.connect(flood.publishers));
  std::string signals;
  while (signals.size() < 256 * 1024) {
    signals += request("signal", "a.b", std::string(flood.payload, 'x'));
  }
  {
    const HonestClients honest(server, {.attack = flood.what});
    std::atomic<bool> stop{false};
    std::thread reading([&] {
      while (!stop) listeners.discard(50ms);
    });
    std::vector<std::size_t> sent(flood.publishers);
    for (const auto end = SteadyClock::now() + scaled(4s); SteadyClock::now() < end;) {
      for (std::size_t i = 0; i < flood.publishers; ++i) {
        const std::string_view rest = std::string_view(signals).substr(sent[i]);
        sent[i] = (sent[i] + publishers.offer(i, rest)) % signals.size();
      }
      publishers.discard(1ms);
    }
    stop = true;
    reading.join();
  }
  expect_grown_at_most(server, base_kib, flood.kept_mib_max * 1024);
}

INSTANTIATE_TEST_SUITE_P(, AbuseBySignals,
                         testing::Values(Flood{"many small signals", 1'000, 64, 8, false, 512},
                                         Flood{"large signals", 16, 4, 60'000, false, 160},
                                         Flood{"large signals to a thousand", 1'000, 1, 60'000,
                                               true, 160}));

// What a signal visits is looked at a part at a time, though it reaches few.
TEST(Abuse, SignalsToGroupsWithoutEnd) {
  constexpr std::size_t kGroups = 10'000;
  const ServerProcess server({"--threads", "2"});
  const HonestClients honest(server, {.attack = "signals to 300,000 groups"});
  Swarm listeners(server.port());
  const std::size_t count = scaled(30);
  ASSERT_TRUE(listeners.connect(count));
  for (std::size_t who = 0; who < count; ++who) {
    const auto listen = [who](std::size_t i) {
      return request("listen", "a.b", "group " + std::to_string(who * kGroups + i));
    };
    ASSERT_EQ(listeners.ask_all(who, kGroups, "ok", listen), kGroups);
    EXPECT_EQ(listeners.ask(who, request("listen", "a.b", "one more")), "error");
  }
  Swarm publishers(server.port());
  ASSERT_TRUE(publishers.connect(4));
  std::string signals;
  while (signals.size() < 130'000) signals += request("signal", "a.b", "x");
  for (std::size_t who = 0; who < 4; ++who) publishers.offer(who, signals);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto answer = publishers.next();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->line, "ok " + std::to_string(count));
  }
  const auto end = SteadyClock::now() + scaled(2s);
  while (SteadyClock::now() < end) publishers.discard(50ms);
  for (std::size_t who = 0; who < 4; ++who) publishers.reset(who);
  for (std::size_t who = 0; who < count; ++who) listeners.reset(who);
}

// A token a node would be 4 MiB for a thousand of these patterns, which differ in their first
// tokens.
TEST(Abuse, SubscriptionsOfManyTokens) {
  constexpr std::size_t kPatterns = 10'000;
  constexpr std::size_t kConnections = 4;
  constexpr int kTokens = 32;
  const ServerProcess server({"--threads", "2", "--gc-interval", "1"});
  Swarm listeners(server.port());
  ASSERT_TRUE(listeners.connect(kConnections));
  const std::size_t before_kib = server.memory_kib();
  for (std::size_t who = 0; who < kConnections; ++who) {
    const auto listen = [who](std::size_t i) {
      std::string pattern;
      std::size_t digits = who * kPatterns + i;
      for (int token = 0; token < kTokens; ++token, digits /= 10) {
        pattern += {token == 0 ? 'x' : '.', static_cast<char>('0' + digits % 10)};
      }
      return request("listen", pattern, "");
    };
    ASSERT_EQ(listeners.ask_all(who, kPatterns, "ok", listen), kPatterns);
  }
  const std::size_t most_kib = server.memory_kib();
  std::this_thread::sleep_for(2s);  // the server looks at what it has every second
  for (std::size_t who = 0; who < kConnections; ++who) listeners.reset(who);
  const std::size_t room_kib = 8 * 1024;
  const auto deadline = SteadyClock::now() + 20s;
  while (!kSanitized && server.memory_kib() > before_kib + room_kib &&
         SteadyClock::now() < deadline) {
    std::this_thread::sleep_for(50ms);
  }
  std::printf("40,000 patterns: memory %zu KiB before, %zu KiB with them, %zu KiB after\n",
              before_kib, most_kib, server.memory_kib());
  if (kSanitized) return;  // a sanitizer keeps freed memory
  EXPECT_LE(most_kib, before_kib + std::size_t{48} * 1024);
  EXPECT_LE(server.memory_kib(), before_kib + room_kib);
}

// What a session leaves behind is ended a part at a time.
TEST(Abuse, ASessionEndsWithHoldsWithoutEnd) {
  const std::size_t count = scaled(500'000);
  const std::string all = std::to_string(count);
  const ServerProcess server({"--threads", "1"});
  Swarm swarm(server.port());
  ASSERT_TRUE(swarm.connect(2));
  ASSERT_EQ(swarm.ask_all(0, count, "ok ",
                          [&](std::size_t) { return request("sl", "many", "0 " + all + " 600"); }),
            count);
  const HonestClients honest(server, {.attack = "the end of a session with 500,000 holds"});
  EXPECT_EQ(swarm.ask(1, request("sl", "many", "0 " + all)), "timeout");
  swarm.reset(0);
  // All of them can be had again, so all of them have ended.
  ASSERT_EQ(swarm.ask_all(1, count, "ok ",
                          [&](std::size_t) { return request("sl", "many", "10 " + all + " 600"); }),
            count);
  swarm.reset(1);
  std::this_thread::sleep_for(scaled(500ms));
}

}  // namespace
}  // namespace lockd
