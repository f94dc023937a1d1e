// Signals to very many, and clients that leave very much behind: see also load/fan_out_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "abuse/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// What one loop has for another is bounded, however fast it comes. Every second of the listeners is
// in a group of its own, if so wanted.
void flood_with_large_signals(std::size_t count, bool in_groups, std::chrono::milliseconds time) {
  const ServerProcess server({"--threads", "2"});
  const std::size_t base_kib = server.memory_kib();
  Swarm listeners(server.port());
  ASSERT_TRUE(listeners.connect(count));
  for (std::size_t i = 0; i < count; ++i) {
    const std::string group = in_groups && i % 2 == 0 ? "group " + std::to_string(i) : "";
    ASSERT_EQ(listeners.ask(i, request("listen", "a.>", group)), "ok");
  }
  Swarm publisher(server.port());
  ASSERT_TRUE(publisher.connect(1));
  {
    const HonestClients honest(server, {.attack = "large signals to many"});
    std::atomic<bool> stop{false};
    std::thread reading([&] {
      while (!stop) listeners.discard(50ms);
    });
    const std::string signal = request("signal", "a.b", std::string(60'000, 'x'));
    std::size_t sent = 0;
    for (const auto end = SteadyClock::now() + time; SteadyClock::now() < end;) {
      sent = (sent + publisher.offer(0, std::string_view(signal).substr(sent))) % signal.size();
      publisher.discard(1ms);
    }
    stop = true;
    reading.join();
  }
  const std::size_t kept_kib = server.memory_max_kib() - base_kib;
  std::printf("at most %zu KiB kept\n", kept_kib);
  if (is_full_size()) {
    EXPECT_LE(kept_kib, 160 * 1024U);
  }
}

TEST(Abuse, LargeSignalsToMany) { flood_with_large_signals(16, false, scaled(4s)); }
TEST(Abuse, LargeSignalsToAThousand) { flood_with_large_signals(1'000, true, scaled(3s)); }

// Requests of one client, many at a time; how many were answered by a line that begins so.
std::size_t ask_all(Swarm& swarm, std::size_t who, std::size_t count, std::string_view answer,
                    const std::function<std::string(std::size_t)>& request_of) {
  constexpr std::size_t kAtATime = 2'000;
  std::size_t answered = 0;
  for (std::size_t asked = 0; asked < count;) {
    std::string requests;
    const std::size_t end = std::min(count, asked + kAtATime);
    const std::size_t some = end - asked;
    for (; asked < end; ++asked) requests += request_of(asked);
    if (!swarm.send(who, requests)) return answered;
    for (std::size_t i = 0; i < some; ++i) answered += swarm.read_line(who).starts_with(answer);
  }
  return answered;
}

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
    ASSERT_EQ(ask_all(listeners, who, kGroups, "ok", listen), kGroups);
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

// What a session leaves behind is ended a part at a time.
TEST(Abuse, ASessionEndsWithHoldsWithoutEnd) {
  const std::size_t count = scaled(500'000);
  const std::string all = std::to_string(count);
  const ServerProcess server({"--threads", "1"});
  Swarm swarm(server.port());
  ASSERT_TRUE(swarm.connect(2));
  ASSERT_EQ(ask_all(swarm, 0, count, "ok ",
                    [&](std::size_t) { return request("sl", "many", "0 " + all + " 600"); }),
            count);
  const HonestClients honest(server, {.attack = "the end of a session with 500,000 holds"});
  EXPECT_EQ(swarm.ask(1, request("sl", "many", "0 " + all)), "timeout");
  swarm.reset(0);
  // All of them can be had again, so all of them have ended.
  ASSERT_EQ(ask_all(swarm, 1, count, "ok ",
                    [&](std::size_t) { return request("sl", "many", "10 " + all + " 600"); }),
            count);
  swarm.reset(1);
  std::this_thread::sleep_for(scaled(500ms));
}

}  // namespace
}  // namespace lockd
