// What must be true of a recovery after a crash: against the history of what was appended, and
// against what the clients were told. See violation.h for the names.
#pragma once

#include "crash/crash_stats.h"
#include "crash/ledger.h"
#include "crash/log_prefixes.h"
#include "crash/simulated_disk.h"

namespace lockd::crash {

enum class Cause { power, kill };

// What is known at the moment of a crash.
struct Situation {
  const LogPrefixes& history;
  const Ledger& ledger;
  Duration sync_interval{};
  Position durable = 0;      // what the clients have been told rests on this
  Position power_floor = 0;  // this much survives a power failure
  Position kill_floor = 0;   // and this much the death of the process
  Time now{};                // the engine's, when there is a process again
};

struct Recovered {
  Position position = 0;
  Holds holds{};
};

// Starts a process on what a crash has left, and looks at what it has recovered. With `set_back`
// the wall clock is an hour behind. Throws Violation.
Recovered check_recovery(SimulatedDisk& disk, Cause cause, bool set_back,
                         const Situation& situation, CrashStats& stats);

// Starts a process on what is left of a recovery of `expected`. Throws Violation unless it finds
// the same.
void check_same(SimulatedDisk& disk, Duration sync_interval, const Recovered& expected,
                CrashStats& stats);

}  // namespace lockd::crash
