// What is in a journal's directory, and whether it can be trusted.
//
// Reads and checks every frame that recovery will need, and changes nothing. Bytes that are not a
// frame are one of two things. If anything says that what should be there was once durable (a later
// frame, the next segment), they are damage, and the scan throws. Otherwise they are what a crash
// leaves of the last write, a torn tail, and nobody was ever told of what it held.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "journal/format.h"
#include "journal/journal_error.h"
#include "journal/storage.h"

namespace lockd {

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

// Throws JournalError when the journal is damaged, of a later format, or cannot be read.
LogScan scan(Storage& storage, const Log& log);

}  // namespace lockd
