// Takes up a journal where the last run left it. Every step may be interrupted by a crash and done
// again.
#pragma once

#include <functional>

#include "journal/journal_error.h"
#include "journal/log_scan.h"
#include "journal/storage.h"
#include "lockd/journal.h"

namespace lockd {

// Takes the directory for this process. Throws JournalError when another has it.
void lock_directory(Storage& storage);

// Cuts off the torn tail, removes a segment that never began, and makes durable what was read:
// after a crash of the process alone it may not be on the disk yet. Throws JournalError.
void repair(Storage& storage, const LogScan& scan, const Log& log);

// Passes every event to `apply`, in order, and returns how many there were. Throws JournalError.
std::uint64_t replay(Storage& storage, const LogScan& scan, const Log& log,
                     const std::function<void(const Event&)>& apply);

// What the engine's time is at `now`. On the boot of the last run CLOCK_BOOTTIME tells what has
// passed since; on another the wall clock, as far as it goes forward. Never less than was seen.
Time engine_time_at(const ClockReading& now, const LogScan& scan);

}  // namespace lockd
