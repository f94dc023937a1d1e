// kill -9 under load, again and again, on one journal.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "durability/durable_server.h"
#include "journal/testing/temporary_directory.h"

namespace lockd {
namespace {

std::uint32_t seed() {
  const char* const given = std::getenv("LOCKD_SEED");
  const std::uint32_t seed = given != nullptr
                                 ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                                 : std::random_device()();
  std::printf("LOCKD_SEED=%u\n", seed);
  return seed;
}

// LOCKD_KILL_CYCLES, for thousands; else `usual`.
int cycles(int usual) {
  const char* const given = std::getenv("LOCKD_KILL_CYCLES");
  return given != nullptr ? std::atoi(given) : scaled(usual);
}

void kill_in_a_loop(int lives, const std::vector<std::string>& flags) {
  const std::uint32_t seed = lockd::seed();
  const TemporaryDirectory directory;
  std::minstd_rand random(seed);
  Crowd crowd(seed);
  for (int i = 0; i < lives; ++i) {
    // On a slow disk a reply that is sent too early is found out.
    const bool slow = has_faults() && i % 3 == 0;
    ServerProcess server(
        durable(directory.path(), flags),
        {.environment = slow ? faults({"SLOW_US=1000"}) : std::vector<std::string>()});
    crowd.live(server, std::chrono::milliseconds(5 + random() % 56));
    // The history as a whole is long: it is looked at now and then, and in the end.
    if (i % 50 == 49) crowd.expect_no_complaints();
    ASSERT_FALSE(testing::Test::HasFailure()) << "in life " << i + 1;
  }
  ServerProcess server(durable(directory.path(), flags));
  crowd.verify(server);
  crowd.expect_no_complaints();
  std::printf("%d lives, %zu grants\n", lives, crowd.grants());
}

TEST(KillTest, LosesNothing) { kill_in_a_loop(cycles(200), {}); }

// A crash of the process is not one of the machine: what was written is there.
TEST(KillTest, LosesNothingBetweenSyncs) { kill_in_a_loop(cycles(40), {"--wal-sync", "10ms"}); }

}  // namespace
}  // namespace lockd
