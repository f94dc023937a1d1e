// What the journal makes of a disk that fails, or is full: a failure is final and nothing that was
// acknowledged before is lost; a full disk is one that passes.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <iostream>
#include <string>

#include "crash/run_world.h"

namespace lockd::crash {
namespace {

using Operation = SimulatedDisk::Operation;

// A life has so many calls, and each of them may be the one that fails: those of a start, of
// commits, of compactions.
const std::uint64_t kCalls = slowness() == 1 ? 150 : 60;

// Looked at where it matters: after the fault, and when the next process takes over.
WorldOptions faulty() {
  WorldOptions options;
  options.calls = options.life_min = options.life_max = kCalls;
  options.look_after_fault = 30;
  options.inspector.images_per_call = 4;
  return options;
}

TEST(StorageFault, AnyCallMayFailOnce) {
  CrashStats stats;
  std::array<int, SimulatedDisk::kOperations> hit{};
  for (std::uint64_t n = 1; n <= kCalls; ++n) {
    WorldOptions options = faulty();
    options.fault = [&](std::uint64_t attempt, Operation operation) {
      if (attempt != n) return 0;
      ++hit[static_cast<std::size_t>(operation)];
      return EIO;
    };
    if (!run_world(options, stats, "; the fault is at attempt " + std::to_string(n))) return;
  }
  if (is_one_crash_asked_for()) return;
  std::cout << stats << std::endl;
  EXPECT_GT(stats.failures, 0);
  EXPECT_GT(stats.refused_starts, 0);
  for (const Operation operation :
       {Operation::create, Operation::write, Operation::allocate, Operation::remove,
        Operation::sync, Operation::sync_directory}) {
    EXPECT_GT(hit[static_cast<std::size_t>(operation)], 0) << SimulatedDisk::name_of(operation);
  }
}

// For a while there is no space for anything new, from any call on.
TEST(StorageFault, ThereMayBeNoSpaceForAWhile) {
  CrashStats stats;
  int refused = 0;
  for (std::uint64_t n = 1; n <= kCalls; n += 2) {
    WorldOptions options = faulty();
    options.fault = [&](std::uint64_t attempt, Operation operation) {
      const bool takes_space = operation == Operation::create || operation == Operation::allocate;
      if (!takes_space || attempt < n || attempt >= n + 8) return 0;
      ++refused;
      return ENOSPC;
    };
    if (!run_world(options, stats, "; no space from attempt " + std::to_string(n))) return;
  }
  if (is_one_crash_asked_for()) return;
  std::cout << stats << std::endl;
  EXPECT_GT(refused, 0);
  EXPECT_GT(stats.refused_starts, 0);
}

// Full, and empty again, over and over: what is released and renewed meanwhile is acknowledged.
TEST(StorageFault, AFullDiskIsLivedThrough) {
  WorldOptions options;
  options.calls = 1500 / slowness();
  options.life_min = options.life_max = 300;
  options.inspector.images_per_call = 4;
  int batch = 0;
  int full = 0;
  int accepting_again = 0;
  int acknowledged_while_full = 0;
  bool was_full = false;
  Position durable = 0;
  options.between_batches = [&](SimulatedDisk& disk, const Process& process) {
    const bool is_full = Journal::is_full(process.log.state());
    full += is_full && !was_full;
    accepting_again += was_full && process.log.state() == Journal::State::accepting;
    acknowledged_while_full += is_full && was_full && process.log.durable() > durable;
    was_full = is_full;
    durable = process.log.durable();
    ++batch;
    if (batch % 40 == 20) disk.capacity = disk.size();
    if (batch % 40 == 0) disk.capacity = UINT64_MAX;
  };
  CrashStats stats;
  if (!run_world(options, stats) || is_one_crash_asked_for()) return;
  std::cout << stats << "\n"
            << full << " times full, " << accepting_again << " times accepting again, "
            << acknowledged_while_full << " acknowledgements while full" << std::endl;
  EXPECT_GT(full, 0);
  EXPECT_GT(accepting_again, 0);
  EXPECT_GT(acknowledged_while_full, 0);
}

// A disk with nothing left from before each start on, for a while: it starts all the same.
TEST(StorageFault, AFullDiskAtTheStartIsLivedThrough) {
  WorldOptions options;
  options.calls = 1500 / slowness();
  options.life_min = 20;
  options.life_max = 120;
  options.begins_full = true;
  options.inspector.images_per_call = 4;
  int batch = 0;
  int acknowledged_while_full = 0;
  Position durable = 0;
  options.between_batches = [&](SimulatedDisk& disk, const Process& process) {
    const bool is_full = Journal::is_full(process.log.state());
    acknowledged_while_full += is_full && process.log.durable() > durable;
    durable = process.log.durable();
    if (++batch % 50 == 0) disk.capacity = UINT64_MAX;
  };
  CrashStats stats;
  if (!run_world(options, stats) || is_one_crash_asked_for()) return;
  std::cout << stats << "\n"
            << acknowledged_while_full << " acknowledgements while full" << std::endl;
  EXPECT_EQ(stats.refused_starts, 0);
  EXPECT_EQ(stats.failures, 0);
  EXPECT_GT(acknowledged_while_full, 0);
  EXPECT_GT(stats.calls[static_cast<std::size_t>(Operation::truncate)], 0);
}

// Nothing new can be made, for a while, from any call on: no descriptors are left.
TEST(StorageFault, NoFileCanBeMadeForAWhile) {
  CrashStats stats;
  int refused = 0;
  for (std::uint64_t n = 10; n <= kCalls; n += 2) {
    WorldOptions options = faulty();
    options.fault = [&](std::uint64_t attempt, Operation operation) {
      if (operation != Operation::create || attempt < n || attempt >= n + 60) return 0;
      ++refused;
      return EMFILE;
    };
    if (!run_world(options, stats, "; no files from attempt " + std::to_string(n))) return;
  }
  if (is_one_crash_asked_for()) return;
  std::cout << stats << std::endl;
  EXPECT_GT(refused, 0);
  EXPECT_EQ(stats.failures, 0);
}

}  // namespace
}  // namespace lockd::crash
