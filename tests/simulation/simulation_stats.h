// What happened in a simulation, or in many.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockd::simulation {

enum class FaultKind : std::uint8_t {
  cut,
  freeze,
  stall,
  kill,
  kill_in_call,
  power_failure,
  stop,
  disk_error,
  disk_full,
  wall_jump,
  flipped_bit,
  full_start,
  no_files,
};
inline constexpr std::size_t kFaultKinds = 13;
inline constexpr std::array<std::string_view, kFaultKinds> kFaultNames = {"connections cut",
                                                                          "clients frozen",
                                                                          "stalls",
                                                                          "kills",
                                                                          "kills in a disk call",
                                                                          "power failures",
                                                                          "clean stops",
                                                                          "disk errors",
                                                                          "disk full",
                                                                          "wall clock jumps",
                                                                          "bits flipped at rest",
                                                                          "starts on a full disk",
                                                                          "no file can be made"};

struct SimulationStats {
  std::uint64_t seeds = 0;
  std::uint64_t operations = 0;
  std::uint64_t steps = 0;
  std::uint64_t checks = 0;  // of every invariant
  std::uint64_t grants_told = 0;
  std::uint64_t grants_told_again = 0;  // by a secret that was asked by before
  std::uint64_t granted = 0;
  std::uint64_t granted_shared = 0;     // beside others
  std::uint64_t granted_several = 0;    // permits
  std::uint64_t granted_sets = 0;       // of keys, in one step
  std::uint64_t granted_sets_late = 0;  // that had waited
  std::uint64_t expired = 0;
  std::uint64_t revoked = 0;
  std::uint64_t resized = 0;
  std::uint64_t disconnected = 0;
  std::uint64_t gave_up = 0;
  std::uint64_t crashes = 0;  // however it came to an end that was not asked for
  std::uint64_t refused_starts = 0;
  double virtual_seconds = 0;
  std::array<std::uint64_t, kFaultKinds> faults{};

  void count(FaultKind kind) { ++faults[static_cast<std::size_t>(kind)]; }
  SimulationStats& operator+=(const SimulationStats& other) {
    seeds += other.seeds;
    operations += other.operations;
    steps += other.steps;
    checks += other.checks;
    grants_told += other.grants_told;
    grants_told_again += other.grants_told_again;
    granted += other.granted;
    granted_shared += other.granted_shared;
    granted_several += other.granted_several;
    granted_sets += other.granted_sets;
    granted_sets_late += other.granted_sets_late;
    expired += other.expired;
    revoked += other.revoked;
    resized += other.resized;
    disconnected += other.disconnected;
    gave_up += other.gave_up;
    crashes += other.crashes;
    refused_starts += other.refused_starts;
    virtual_seconds += other.virtual_seconds;
    for (std::size_t i = 0; i < kFaultKinds; ++i) faults[i] += other.faults[i];
    return *this;
  }
};

}  // namespace lockd::simulation
