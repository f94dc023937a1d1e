// A server's life, and its next: clients that act at random, a journal that is turned by hand, and
// in the midst of each call to the disk a look at what a crash would leave. Lives end by a power
// failure or by the death of the process, and the next goes on with what is there.
//
// The same seed gives the same calls, whatever is looked at.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/testing/chance.h"
#include "crash/clients.h"
#include "crash/crash_stats.h"
#include "crash/inspector.h"
#include "crash/ledger.h"
#include "crash/log_prefixes.h"
#include "crash/process.h"
#include "crash/simulated_disk.h"

namespace lockd::crash {

struct WorldOptions {
  std::uint64_t seed = 1;
  std::uint64_t calls = 2000;  // it stops with the life that has reached so many
  std::uint64_t life_min = 20;
  std::uint64_t life_max = 300;
  Duration sync_interval{};
  bool begins_full = false;  // each life but the first: nothing is left on the disk
  InspectorOptions inspector{};

  // Asked before each attempt to change something, from 1 on: an errno to fail with, or 0.
  std::function<int(std::uint64_t attempt, SimulatedDisk::Operation)> fault{};
  // Looks at no more than so many calls after a fault, and after the start that follows it.
  std::uint64_t look_after_fault = 0;  // 0: looks at all calls
  // Called after each batch; may change the disk's capacity.
  std::function<void(SimulatedDisk&, const Process&)> between_batches{};
};

class World {
 public:
  World(const WorldOptions& options, CrashStats& stats);

  // Throws Violation.
  void run();

 private:
  struct LifeEnds {};  // thrown through all that runs

  void live();
  void step(Process& process, Clients& clients);
  void turn(Process& process);
  void stop(Process& process);
  void step_after_failure(Process& process, Clients& clients);
  void in_call(SimulatedDisk::Operation operation);
  void prepare_next_life();
  void lose_power(const Situation& situation);
  Situation situation() const;
  Time now() const { return {offset_ns_ + disk_->now.boot_ns}; }

  const WorldOptions options_;
  CrashStats& stats_;
  Chance chance_;
  Inspector inspector_;

  std::unique_ptr<SimulatedDisk> disk_;
  std::unique_ptr<SimulatedDisk> next_disk_;  // when a life has ended
  LogPrefixes history_;
  Ledger ledger_;
  Process* process_ = nullptr;  // while it is up

  std::uint64_t lives_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t attempts_ = 0;
  bool faulted_ = false;       // in this life something was refused
  bool ever_faulted_ = false;  // or in an earlier one
  std::uint64_t look_until_ = 0;
  std::uint64_t life_ends_at_ = 0;
  SimulatedDisk::Operation last_operation_{};
  std::uint64_t offset_ns_ = 0;  // engine time less CLOCK_BOOTTIME, as it should be
  // How much of the log survives. While a process is up, its word counts for the second; and for
  // the first too, unless it syncs at intervals.
  Position power_floor_ = 0;
  Position kill_floor_ = 0;
};

}  // namespace lockd::crash
