// How often each thing has happened. A test that has not seen a thing has not tested it.
#pragma once

#include <array>
#include <cstdint>
#include <ostream>

#include "crash/simulated_disk.h"

namespace lockd::crash {

struct CrashStats {
  std::uint64_t images = 0;           // of the disk, left by a power failure in the script
  std::uint64_t kills = 0;            // of the process, in the script
  std::uint64_t recovery_images = 0;  // left by a power failure during a recovery
  std::uint64_t recovery_kills = 0;   // of a process that was recovering

  // Each is a crash point.
  using Calls = std::array<std::uint64_t, SimulatedDisk::kOperations>;
  Calls calls{};           // of the script
  Calls recovery_calls{};  // of recoveries

  std::uint64_t batches = 0;
  std::uint64_t power_failures = 0;  // that the script itself went on after
  std::uint64_t process_deaths = 0;
  std::uint64_t stops = 0;      // of them and of power failures, so many after a clean stop
  std::uint64_t snapshots = 0;  // that were completed, the older segments removed

  std::uint64_t failures = 0;        // of the journal, after a fault of the disk
  std::uint64_t refused_starts = 0;  // likewise

  // Of all images.
  std::uint64_t torn_tails = 0;
  std::uint64_t never_began = 0;       // segments that were made and not used
  std::uint64_t kept_unasked = 0;      // more was recovered than was acknowledged
  std::uint64_t lost_unasked = 0;      // less than was appended
  std::uint64_t several_segments = 0;  // were needed
  std::uint64_t clocks_set_back = 0;   // over the reboot
  std::uint64_t holds_recovered = 0;

  std::uint64_t total_images() const { return images + kills + recovery_images + recovery_kills; }
};

std::ostream& operator<<(std::ostream& out, const CrashStats& stats);

}  // namespace lockd::crash
