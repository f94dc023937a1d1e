// One publisher that floods listeners who read: see also load/fan_out_test.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "abuse/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// What one loop has for another is bounded, however fast it comes.
TEST(Abuse, LargeSignalsToMany) {
  const ServerProcess server({"--threads", "2"});
  const std::size_t base_kib = server.memory_kib();
  Swarm listeners(server.port());
  ASSERT_TRUE(listeners.connect(16));
  for (std::size_t i = 0; i < 16; ++i) {
    ASSERT_EQ(listeners.ask(i, request("listen", "a.>", "")), "ok");
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
    for (const auto end = SteadyClock::now() + scaled(4s); SteadyClock::now() < end;) {
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

}  // namespace
}  // namespace lockd
