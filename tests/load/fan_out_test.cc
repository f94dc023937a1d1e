// Publishers that never pause, and many who listen: what others depend on goes on beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "load/scale.h"
#include "load/swarm.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

// Some listen and read all they get; others publish without waiting for replies.
class FanOut {
 public:
  FanOut(const ServerProcess& server, std::size_t listeners, std::size_t publishers,
         std::size_t payload)
      : listeners_(server.port()), publishers_(server.port()) {
    EXPECT_TRUE(listeners_.connect(listeners));
    for (std::size_t i = 0; i < listeners; ++i) {
      EXPECT_EQ(listeners_.ask(i, request("listen", "a.>", "")), "ok");
    }
    EXPECT_TRUE(publishers_.connect(publishers));
    while (signals_.size() < 256 * 1024) {
      signals_ += request("signal", "a.b", std::string(payload, 'x'));
    }
    reading_ = std::thread([this] {
      while (!stop_) received_ += listeners_.discard(50ms);
    });
    publishing_ = std::thread([this] { publish(); });
  }

  ~FanOut() {
    stop_ = true;
    publishing_.join();
    reading_.join();
  }

  std::size_t received() const { return received_; }

 private:
  void publish() {
    std::vector<std::size_t> sent(publishers_.size());
    while (!stop_) {
      for (std::size_t i = 0; i < publishers_.size(); ++i) {
        const std::string_view rest = std::string_view(signals_).substr(sent[i]);
        sent[i] = (sent[i] + publishers_.offer(i, rest)) % signals_.size();
      }
      publishers_.discard(1ms);
    }
  }

  Swarm listeners_;
  Swarm publishers_;
  std::string signals_;
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> received_{0};
  std::thread reading_;
  std::thread publishing_;
};

// A lease of five seconds, which is kept by renewals. The longest that one of them took.
SteadyClock::duration keep_a_lease(const ServerProcess& server, SteadyClock::duration time) {
  LineClient holder = server.connect();
  const std::string token = token_of(holder.ask(request("l", "kept", "0 5")));
  SteadyClock::duration slowest{};
  for (const auto end = SteadyClock::now() + time; SteadyClock::now() < end;) {
    const auto asked = SteadyClock::now();
    EXPECT_EQ(holder.ask(request("n", "kept", token + " 5")), "ok 5");
    slowest = std::max(slowest, SteadyClock::now() - asked);
    if (testing::Test::HasFailure()) break;
    std::this_thread::sleep_for(20ms);
  }
  return slowest;
}

void print(const char* what, SteadyClock::duration slowest, std::size_t received) {
  std::printf("%s: the slowest renewal took %.1f ms, %.1f MB were received\n", what,
              std::chrono::duration<double, std::milli>(slowest).count(),
              static_cast<double>(received) / 1e6);
}

TEST(FanOut, ALeaseIsKeptBesideIt) {
  const ServerProcess server({"--threads", "4"});
  const FanOut crowd(server, scaled(1000), scaled(64), 8);
  const auto slowest = keep_a_lease(server, scaled(8s));
  print("many small signals", slowest, crowd.received());
}

// What one loop has for another is bounded, however fast it comes.
TEST(FanOut, TakesNoMoreMemoryThanItsBudget) {
  const ServerProcess server({"--threads", "4"});
  const std::size_t base_kib = server.memory_kib();
  const FanOut crowd(server, 16, 4, 60'000);
  const auto slowest = keep_a_lease(server, scaled(8s));
  print("large signals", slowest, crowd.received());
  const std::size_t kept_kib = server.memory_max_kib() - base_kib;
  std::printf("at most %zu KiB kept\n", kept_kib);
  if (is_full_size()) {
    EXPECT_LE(kept_kib, 160 * 1024U);
  }
}

}  // namespace
}  // namespace lockd
