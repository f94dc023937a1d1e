// A million keys that are used once and never again: the memory they took comes back.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <thread>

#include "load/scale.h"
#include "load/swarm.h"
#include "support/server_process.h"

namespace lockd {
namespace {

// Takes each key once, and lets the connection's end release them all.
void use_keys(const ServerProcess& server, std::size_t first, std::size_t count) {
  Swarm client(server.port());
  ASSERT_TRUE(client.connect(1));
  const auto take = [first](std::size_t i) {
    return request("l", "transient-" + std::to_string(first + i), "0 600");
  };
  ASSERT_EQ(client.ask_all(0, count, "ok ", take), count);
}

// What is resident once it is at most `kib`, or after a while.
std::size_t await_memory(const ServerProcess& server, std::size_t kib) {
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  while (server.memory_kib() > kib && LineClient::Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return server.memory_kib();
}

TEST(TransientKeys, AMillionLeaveNoMemoryBehind) {
  const ServerProcess server(
      {"--max-locks", "2000000", "--gc-max-idle", "1", "--gc-interval", "1", "--history", "1MiB"});
  LineClient observer = server.connect();
  const std::size_t keys = scaled(1'000'000);

  // What the first few leave behind is the server's own: its arenas, its buffers, its history.
  use_keys(server, 0, keys / 100);
  await_stats(observer, "\"idle_locks\":[],");
  const std::size_t before_kib = server.memory_kib();
  use_keys(server, keys, keys);
  // Nobody asks for stats meanwhile: a million keys are a reply of 60 MB.
  const std::size_t after_kib = await_memory(server, before_kib + before_kib / 10);
  LineClient late = server.connect();
  const std::string stats = await_stats(late, "\"idle_locks\":[],");
  EXPECT_NE(stats.find("\"locks\":[],"), std::string::npos) << stats.substr(0, 200);
  std::printf("%zu keys: memory %zu KiB before, at most %zu KiB, %zu KiB after\n", keys, before_kib,
              server.memory_max_kib(), after_kib);
  if (is_full_size()) {
    EXPECT_LE(after_kib, before_kib + before_kib / 10);
  }
}

}  // namespace
}  // namespace lockd
