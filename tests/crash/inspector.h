// Crashes copies of a disk in the midst of a call: many times, each time leaving something else;
// and for some of these crashes the recovery from it, at each call of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "crash/crash_stats.h"
#include "crash/recovery_check.h"
#include "crash/simulated_disk.h"

namespace lockd::crash {

// One crash: in the midst of which call, and which of those at that moment.
struct CrashPoint {
  std::uint64_t call = 0;
  std::uint64_t image = 0;

  friend bool operator==(const CrashPoint&, const CrashPoint&) = default;
  std::string text() const;
};

// The same, and during the recovery from it another: "1234.5" or "1234.5/12.1".
struct CrashPath {
  CrashPoint outer{};
  std::optional<CrashPoint> inner{};

  static std::optional<CrashPath> parse(const std::string& text);
};

struct InspectorOptions {
  std::uint64_t seed = 1;
  std::uint64_t images_per_call = 8;
  std::uint64_t recovery_images_per_call = 3;
  std::uint64_t recoveries_every = 24;  // of so many crashes one is followed by those of recovery
  std::optional<CrashPath> only{};      // looks at this one alone
};

class Inspector {
 public:
  Inspector(const InspectorOptions& options, CrashStats& stats)
      : options_(options), stats_(stats) {}

  // The disk is in the midst of the call of this number. Throws Violation.
  void inspect(std::uint64_t call, const SimulatedDisk& disk, const Situation& situation);

  // One of `count` images that a power failure can leave; nothing if it is the same as another.
  static std::optional<Files> image(const SimulatedDisk& disk, std::uint64_t number,
                                    std::uint64_t count, Chance chance);
  // The disk when the machine is up again.
  static SimulatedDisk rebooted(const Files& files, const ClockReading& crashed);
  static constexpr Duration kDown = std::chrono::milliseconds(7);

 private:
  void inspect_crash(CrashPoint point, const SimulatedDisk& left, Cause cause,
                     const Situation& situation);
  void crash_recovery(CrashPoint point, SimulatedDisk disk, Cause cause, const Situation& situation,
                      const Recovered& expected);

  const InspectorOptions options_;
  CrashStats& stats_;
};

}  // namespace lockd::crash
