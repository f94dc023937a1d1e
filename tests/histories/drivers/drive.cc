// Drives the client for C++. README.md says what is asked of a driver.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "histories/recording.h"
#include "lockd/client/client.h"

namespace {

using lockd::client::Client;
using lockd::client::HeldLock;
using lockd::client::Outcome;
using lockd::histories::Instant;
using lockd::histories::kSecond;
using lockd::histories::now;

constexpr unsigned kWorkers = 32;

class Worker {
 public:
  Worker(Client& client, unsigned proc, unsigned seed)
      : client_(client), proc_(proc), random_(seed) {}

  void run(const std::atomic<bool>& stopping) {
    while (!stopping) {
      choose();
      hold_one();
      std::this_thread::sleep_for(std::chrono::milliseconds(5 + random_() % 20));
    }
  }

 private:
  void choose() {
    is_lock_ = random_() % 5 != 0;
    key_ = (is_lock_ ? "lock-" : "sem-") + std::to_string(random_() % (is_lock_ ? 160 : 20));
    limit_ = is_lock_ ? 1 : 2;
    ttl_s_ = 1 + random_() % 3;
    wait_s_ = 2 * (random_() % 2);
    fence_ = 0;
  }

  void hold_one() {
    const Instant call = now();
    const lockd::KeyItem key = is_lock_ ? key_ : lockd::semaphore(key_, limit_);
    auto held = client_.acquire({.keys = key,
                                 .wait = std::chrono::seconds(wait_s_),
                                 .lease = std::chrono::seconds(ttl_s_)});
    const Instant ret = now();
    if (!held) return note("acquire", call, ret, refused(held.outcome));
    fence_ = held->fence();
    note("acquire", call, ret, "ok");
    release(*held, keep(*held, ret));
  }

  static const char* refused(Outcome outcome) {
    return outcome == Outcome::timeout ? "error:refused" : "info";
  }

  // Until when it believed in it.
  Instant keep(const HeldLock& held, Instant granted) {
    const Instant until = granted + static_cast<Instant>(500 + random_() % 3500) * 1'000'000;
    const bool is_long = random_() % 100 < 2;
    Instant believed = 0;  // not even once, if the lease was over when the answer came
    for (;;) {
      const Instant at = now();
      if (!held.is_held()) break;
      believed = at;
      if (!is_long || at >= until) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (believed != 0) note("believe", granted, believed, "ok");
    return believed != 0 ? believed : granted;
  }

  // A client that loses a hold releases it by itself: at any time since it last believed in it.
  void release(HeldLock& held, Instant believed) {
    const Instant call = now();
    const bool is_told = held.release().outcome == Outcome::ok;
    note("release", is_told ? call : believed, now(), is_told ? "ok" : "info");
  }

  void note(const char* function, Instant call, Instant end, std::string_view result) const {
    std::printf(R"({"proc":%u,"f":"%s","key":"%s","kind":"%s","limit":%u,"ttl":%lu,"timeout":%lu,)"
                R"("call":%lld,"%s":%lld,"res":"%s","fence":%llu,"via":"lib","srv":"w","life":1})"
                "\n",
                proc_, function, key_.c_str(), is_lock_ ? "lock" : "sem", limit_, ttl_s_, wait_s_,
                static_cast<long long>(call), result == "info" ? "gave_up" : "ret",
                static_cast<long long>(end), result.data(),
                static_cast<unsigned long long>(fence_));
  }

  Client& client_;
  const unsigned proc_;
  std::mt19937 random_;

  // What it asks for.
  bool is_lock_ = true;
  std::string key_;
  std::uint32_t limit_ = 1;
  unsigned long ttl_s_ = 1;
  unsigned long wait_s_ = 0;
  lockd::Fence fence_ = 0;  // of what it holds; 0: nothing
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto proc = static_cast<unsigned>(std::atoi(argv[2]));
  const auto seed = static_cast<unsigned>(std::atoi(argv[3]));
  Client client(
      {.servers = {{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(std::atoi(argv[1]))}}});
  std::atomic<bool> stopping = false;
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&, i] { Worker(client, proc + i, seed + i).run(stopping); });
  }
  while (std::getchar() != EOF) continue;
  stopping = true;
}
