// Every crash point: a long script of clients on the real engine and the real journal, on a
// simulated disk; in the midst of each call to the disk the power fails, or the process dies, in
// many ways; and what is recovered from each is checked. See violation.h for what is promised.
//
// A failure names its crash; run_world.h says how to look at that one alone.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <iostream>

#include "crash/run_world.h"

namespace lockd::crash {
namespace {

using namespace std::chrono_literals;

// Everything that the script is there for has happened.
void expect_variety(const CrashStats& stats) {
  for (std::size_t i = 0; i < stats.calls.size(); ++i) {
    const auto operation = static_cast<SimulatedDisk::Operation>(i);
    if (operation == SimulatedDisk::Operation::truncate) continue;  // only of a disk that is full
    EXPECT_GT(stats.calls[i] + stats.recovery_calls[i], 0) << SimulatedDisk::name_of(operation);
  }
  EXPECT_GT(stats.kills, 0);
  EXPECT_GT(stats.recovery_images, 0);
  EXPECT_GT(stats.recovery_kills, 0);
  EXPECT_GT(stats.power_failures, 0);
  EXPECT_GT(stats.process_deaths, 0);
  EXPECT_GT(stats.stops, 0);
  EXPECT_GT(stats.snapshots, 0);
  EXPECT_GT(stats.torn_tails, 0);
  EXPECT_GT(stats.never_began, 0);
  EXPECT_GT(stats.several_segments, 0);
  EXPECT_GT(stats.kept_unasked, 0);
  EXPECT_GT(stats.lost_unasked, 0);
  EXPECT_GT(stats.clocks_set_back, 0);
  EXPECT_GT(stats.holds_recovered, 0);
}

TEST(Crash, AtEveryCall) {
  CrashStats stats;
  if (!run_world({.calls = 10'000 / slowness()}, stats) || is_one_crash_asked_for()) return;
  std::cout << stats << std::endl;
  expect_variety(stats);
  EXPECT_GE(stats.total_images(), 100'000 / slowness());
}

TEST(Crash, AtEveryCallWithASyncInterval) {
  CrashStats stats;
  if (!run_world({.calls = 3'000 / slowness(), .sync_interval = 50ms}, stats) ||
      is_one_crash_asked_for())
    return;
  std::cout << stats << std::endl;
  expect_variety(stats);
}

}  // namespace
}  // namespace lockd::crash
