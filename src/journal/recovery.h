// Takes up a journal where the last run left it: what is in its directory and whether it can be
// trusted, what has to be put right, and what it tells. Every step may be interrupted by a crash
// and done again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "journal/format.h"
#include "journal/journal_error.h"
#include "journal/storage.h"
#include "lockd/journal.h"

namespace lockd {

// Takes the directory for this process. Throws JournalError when another has it.
void lock_directory(Storage& storage);

struct SegmentSummary {
  SegmentHeader header{};
  std::uint64_t size = 0;  // of the file
  std::uint64_t frames = 0;
  std::uint64_t end_offset = 0;  // behind the last frame
  // What is before it was synced, so says the frame here; of the rest nothing is known.
  std::uint64_t unknown_offset = 0;
  Position end = 0;
  bool complete = false;  // it alone tells of everything
  bool sealed = false;    // the next one exists
  bool closed = false;    // the last run was stopped, and says that all before its end was synced
  Time engine_time{};     // of its last frame or, if there is none, of its header
  std::uint64_t wall_ns = 0;

  std::uint64_t number() const { return header.number; }
};

struct LogScan {
  // Those that recovery reads, in order; empty if the journal is new. Only the last can have a torn
  // tail, and only the last is not sealed.
  std::vector<SegmentSummary> segments;
  std::uint64_t torn_size = 0;               // of the tail, behind the last frame
  std::vector<std::uint64_t> older;          // of no use any more
  std::optional<std::uint64_t> never_began;  // made by a run that crashed before it came to use it

  bool is_new() const { return segments.empty(); }
  Position end() const { return is_new() ? 0 : segments.back().end; }
};

// Reads and checks every frame that recovery will need, and changes nothing. Bytes that are not a
// frame are one of two things. If anything says that what should be there was once durable (a later
// frame, the next segment), they are damage, and the scan throws. Otherwise they are what a crash
// leaves of the last write, a torn tail, and nobody was ever told of what it held.
//
// Throws JournalError when the journal is damaged, of a later format, or cannot be read.
LogScan scan(Storage& storage, const Log& log);

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
