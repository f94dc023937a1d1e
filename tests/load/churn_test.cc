// Clients that come, take a lock, release it and go, as fast as they can: nothing is left behind.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "load/scale.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kThreads = 4;
constexpr std::size_t kKeys = 16;  // for each thread; used in turn

// For a moment there may be no free port: those of closed connections rest for a second.
LineClient connect_when_possible(const ServerProcess& server) {
  const auto deadline = SteadyClock::now() + LineClient::kPatience;
  for (;;) {
    LineClient client = server.connect();
    if (client.connected() || SteadyClock::now() > deadline) return client;
    std::this_thread::sleep_for(1ms);
  }
}

bool visit(const ServerProcess& server, const std::string& key) {
  LineClient client = connect_when_possible(server);
  const std::string grant = client.ask(request("l", key, "0 60"));
  const std::string released = client.ask(request("r", key, token_of(grant)));
  EXPECT_EQ(masked(grant), "ok <token> 60");
  EXPECT_EQ(released, "ok");
  return released == "ok";
}

// How many visits there were.
std::size_t churn(const ServerProcess& server, std::chrono::milliseconds time) {
  std::atomic<std::size_t> visits{0};
  const auto deadline = SteadyClock::now() + time;
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; SteadyClock::now() < deadline; ++i) {
        if (!visit(server, std::to_string(thread) + "-" + std::to_string(i % kKeys))) return;
        ++visits;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return visits;
}

struct Footprint {
  std::size_t descriptors;
  std::size_t threads;
  std::size_t memory_kib;
};

// When all have left but the observer.
Footprint footprint_at_rest(const ServerProcess& server, LineClient& observer) {
  const std::string stats = await_stats(observer, "{\"connections\":1,");
  EXPECT_NE(stats.find("{\"connections\":1,\"locks\":[],"), std::string::npos) << stats;
  return {server.descriptors(), server.threads(), server.memory_kib()};
}

TEST(Churn, ComingAndGoingLeavesNothingBehind) {
  // Without a history, which fills up with what is done.
  const ServerProcess server({"--threads", "4", "--history", "0"});
  LineClient observer = server.connect();
  const Footprint before = footprint_at_rest(server, observer);
  churn(server, scaled(2000ms));
  const Footprint warm = footprint_at_rest(server, observer);
  const std::size_t visits = churn(server, is_full_size() ? 20s : 2s);
  const Footprint after = footprint_at_rest(server, observer);
  std::printf("%zu visits; memory %zu KiB when warm, %zu KiB after\n", visits, warm.memory_kib,
              after.memory_kib);
  EXPECT_GT(visits, scaled(1000));
  EXPECT_LE(server.await_descriptors(before.descriptors), before.descriptors);
  EXPECT_EQ(after.threads, before.threads);
  if (is_full_size()) {
    EXPECT_LE(after.memory_kib, warm.memory_kib + warm.memory_kib / 10 + 4 * 1024);
  }
}

}  // namespace
}  // namespace lockd
