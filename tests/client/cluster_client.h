// A client of a cluster, as patient as tests on a slow machine need it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "lockd/client/client.h"

namespace lockd::client {

// Long enough for a slow machine to find another server in.
inline constexpr std::chrono::seconds kLease{8};

inline ClientOptions patient(std::vector<Address> cluster) {
  using namespace std::chrono_literals;
  return {.cluster = std::move(cluster),
          .connect = {.connect_timeout = 60s, .reply_timeout = 60s},
          .release_timeout = 60s};
}

inline HeldLock acquire(Client& client, const LockRequest& request) {
  auto lock = client.acquire(request);
  EXPECT_TRUE(lock) << describe(lock);
  return std::move(*lock);
}

}  // namespace lockd::client
