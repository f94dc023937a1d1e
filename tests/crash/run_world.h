// Runs a script for a test, and says how a failure can be seen again.
//
// LOCKD_CRASH asks for another seed, or for one crash of it alone:
//
//   LOCKD_CRASH=7:1234.5/12.1 crash_test --gtest_filter=Crash.AtEveryCall
//
// is seed 7, in the midst of call 1234, its image 5; and during the recovery from that, call 12,
// image 1. Image 999 is the death of the process.
#pragma once

#include "base/testing/test_size.h"
#include "crash/crash_stats.h"
#include "crash/world.h"

namespace lockd::crash {

// The sanitizers make all of it slower, about tenfold; scripts are shorter, if not by as much.
inline std::uint64_t slowness() { return test_divisor(5, 5); }

// True if nothing was violated. `about` is for the message: which of several scripts of a test it
// is.
bool run_world(WorldOptions options, CrashStats& stats, const std::string& about = {});

// Whether LOCKD_CRASH asks for one crash alone: then the stats are not those of the test.
bool is_one_crash_asked_for();

}  // namespace lockd::crash
