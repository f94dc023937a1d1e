// Takes up a journal where the last run left it. Every step may be interrupted by a crash and done
// again.
#pragma once

#include <functional>

#include "journal/report.h"
#include "journal/storage.h"
#include "journal/survey.h"
#include "lockd/journal.h"

namespace lockd {

// Takes the directory for this process. Throws JournalError when another has it.
void claim(Storage& storage);

// Cuts off the torn tail, removes a segment that never began, and makes durable what was read:
// after a crash of the process alone it may not be on the disk yet. Throws JournalError.
void mend(Storage& storage, const Survey& survey, const Log& log);

// Passes every event to `apply`, in order, and returns how many there were. Throws JournalError.
std::uint64_t replay(Storage& storage, const Survey& survey, const Log& log,
                     const std::function<void(const Event&)>& apply);

// What the engine's time is at `now`. On the boot of the last run CLOCK_BOOTTIME tells what has
// passed since; on another the wall clock, as far as it goes forward. Never less than was seen.
Time engine_time_at(const Moment& now, const Survey& survey);

}  // namespace lockd
