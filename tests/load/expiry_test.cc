// Very many leases that fall due together: none ends early, and none is forgotten.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "load/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

std::string key(std::size_t number) { return "k" + std::to_string(number); }

TEST(Expiry, AThousandLeasesEndOnTimeAndNotBefore) {
  constexpr auto kLease = 2s;
  constexpr auto kLatest = 10s;  // generous: milliseconds are meant
  const std::size_t keys = connections_possible(scaled(2000)) / 2;
  const ServerProcess server({"--threads", "4"});
  const HonestClients honest(server, {.attack = "leases that end together"});
  Swarm holders(server.port());
  Swarm waiters(server.port());
  ASSERT_TRUE(holders.connect(keys));
  ASSERT_TRUE(waiters.connect(keys));
  std::vector<SteadyClock::time_point> asked(keys);
  std::vector<SteadyClock::time_point> told(keys);
  for (std::size_t i = 0; i < keys; ++i) {
    asked[i] = SteadyClock::now();
    ASSERT_EQ(masked(holders.ask(i, request("l", key(i), "0 2"))), "ok <token> 2");
    told[i] = SteadyClock::now();
    ASSERT_TRUE(waiters.send(i, request("l", key(i), "1000 1000")));
  }
  SteadyClock::duration latest{};
  for (std::size_t i = 0; i < keys; ++i) {
    const auto grant = waiters.next();
    const auto now = SteadyClock::now();
    ASSERT_TRUE(grant.has_value()) << i << " were granted";
    ASSERT_EQ(masked(grant->line), "ok <token> 1000");
    ASSERT_GE(now, asked[grant->who] + kLease) << grant->who;
    latest = std::max(latest, now - (told[grant->who] + kLease));
  }
  EXPECT_LT(latest, kLatest);
  std::printf("%zu leases: the latest waiter heard %.1f ms after the deadline\n", keys,
              std::chrono::duration<double, std::milli>(latest).count());
}

}  // namespace
}  // namespace lockd
