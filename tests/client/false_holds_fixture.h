// A lock held at a server that lies, and how its owner is told.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "lockd/client/client.h"
#include "support/lying_server.h"

namespace lockd::client {

using namespace std::chrono_literals;

inline constexpr const char* kToken = "00031517a4824c9a0123456789abcdef";

inline std::string grant(std::chrono::seconds lease) {
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

inline ClientOptions options_for(const LyingServer& server) {
  return {.servers = {server.address()},
          .connect = {.connect_timeout = 60s, .reply_timeout = 60s},
          .release_timeout = 60s};
}

inline HeldLock acquire(Client& client, Told& told) {
  auto acquired = client.acquire({.keys = "k", .on_lost = told.callback()});
  EXPECT_TRUE(acquired) << describe(acquired);
  return std::move(*acquired);
}

}  // namespace lockd::client
