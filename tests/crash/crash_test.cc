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
void expect_variety(const Figures& figures) {
  for (std::size_t i = 0; i < figures.calls.size(); ++i) {
    const auto operation = static_cast<SimulatedDisk::Operation>(i);
    if (operation == SimulatedDisk::Operation::truncate) continue;  // only of a disk that is full
    EXPECT_GT(figures.calls[i] + figures.recovery_calls[i], 0) << SimulatedDisk::name_of(operation);
  }
  EXPECT_GT(figures.kills, 0);
  EXPECT_GT(figures.recovery_images, 0);
  EXPECT_GT(figures.recovery_kills, 0);
  EXPECT_GT(figures.power_failures, 0);
  EXPECT_GT(figures.process_deaths, 0);
  EXPECT_GT(figures.stops, 0);
  EXPECT_GT(figures.snapshots, 0);
  EXPECT_GT(figures.torn_tails, 0);
  EXPECT_GT(figures.never_began, 0);
  EXPECT_GT(figures.several_segments, 0);
  EXPECT_GT(figures.kept_unasked, 0);
  EXPECT_GT(figures.lost_unasked, 0);
  EXPECT_GT(figures.clocks_set_back, 0);
  EXPECT_GT(figures.holds_recovered, 0);
}

TEST(Crash, AtEveryCall) {
  Figures figures;
  if (!run_world({.calls = 10'000 / slowness()}, figures) || is_one_crash_asked_for()) return;
  std::cout << figures << std::endl;
  expect_variety(figures);
  EXPECT_GE(figures.total_images(), 100'000 / slowness());
}

TEST(Crash, AtEveryCallWithASyncInterval) {
  Figures figures;
  if (!run_world({.calls = 3'000 / slowness(), .sync_interval = 50ms}, figures) ||
      is_one_crash_asked_for())
    return;
  std::cout << figures << std::endl;
  expect_variety(figures);
}

}  // namespace
}  // namespace lockd::crash
