#include "journal/recovery.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "journal/format.h"
#include "journal/segment_reader.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

constexpr std::size_t kCopySize = std::size_t{64} << 10;

struct Candidate {
  std::uint64_t number = 0;
  std::uint64_t size = 0;
  SegmentHeader header{};
  bool has_header = false;
};

class Scanner {
 public:
  Scanner(Storage& storage, const Log& log) : storage_(storage), log_(log) {}

  LogScan run();

 private:
  void find_candidates();
  void read_header(Candidate& candidate);
  void check_headers() const;
  void drop_what_never_began();
  bool is_empty(const Candidate& candidate);
  const Candidate* before(const Candidate& candidate) const;
  SegmentSummary read_frames(const Candidate& candidate);
  void check_tail(const SegmentSummary& last);
  SegmentSummary read_sealed(const Candidate& candidate, const SegmentSummary& next);
  std::unique_ptr<StorageFile> open(std::uint64_t number);

  Storage& storage_;
  const Log& log_;
  std::vector<Candidate> candidates_;  // in the order of their numbers
  LogScan scan_;
};

std::unique_ptr<StorageFile> Scanner::open(std::uint64_t number) {
  std::unique_ptr<StorageFile> file;
  check(path_of(storage_, number), storage_.open(segment_name(number), &file));
  return file;
}

LogScan Scanner::run() {
  find_candidates();
  for (Candidate& candidate : candidates_) read_header(candidate);
  drop_what_never_began();
  if (candidates_.empty()) return scan_;
  check_headers();

  // From the newest back to the first that needs none before it.
  std::vector<SegmentSummary>& segments = scan_.segments;
  segments.push_back(read_frames(candidates_.back()));
  check_tail(segments.back());
  const Candidate* oldest = &candidates_.back();
  while (!segments.back().complete && oldest->number != 1) {
    const Candidate* const previous = before(*oldest);
    if (previous == nullptr) {
      refuse_damage(storage_, oldest->number - 1, 0, "the segment is missing");
    }
    segments.push_back(read_sealed(*previous, segments.back()));
    oldest = previous;
  }
  std::reverse(segments.begin(), segments.end());
  for (const Candidate& candidate : candidates_) {
    if (candidate.number < oldest->number) scan_.older.push_back(candidate.number);
  }
  return std::move(scan_);
}

void Scanner::find_candidates() {
  std::vector<std::string> names;
  check(storage_.directory(), storage_.list(&names));
  for (const std::string& name : names) {
    if (const auto number = segment_number(name)) candidates_.push_back({.number = *number});
  }
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.number < b.number; });
}

void Scanner::read_header(Candidate& candidate) {
  const auto file = open(candidate.number);
  SegmentReader reader(*file, path_of(storage_, candidate.number));
  candidate.size = reader.size();
  std::uint32_t version = 0;
  const HeaderFault fault = reader.read_header(&candidate.header, &version);
  if (fault == HeaderFault::version) {
    throw JournalError(path_of(storage_, candidate.number) + ", byte 8: format version " +
                       std::to_string(version) + ", and this program knows version " +
                       std::to_string(kFormatVersion) +
                       "; start the program that wrote it, or a newer one");
  }
  candidate.has_header = fault == HeaderFault::none;
}

// A new segment is used only when the one before it has been sealed, so a crash in between leaves a
// newest segment of which nobody knows. It may not even have a header.
void Scanner::drop_what_never_began() {
  if (candidates_.empty()) return;
  const Candidate& newest = candidates_.back();
  if (newest.has_header && !is_empty(newest)) return;
  const Candidate* const previous = before(newest);
  if (previous == nullptr && newest.has_header) return;
  if (!is_empty(newest) || (previous == nullptr && newest.number != 1)) {
    refuse_damage(storage_, newest.number, 0, "not the header of a segment");
  }
  if (previous != nullptr) {
    if (!previous->has_header) {
      refuse_damage(storage_, previous->number, 0, "not the header of a segment");
    }
    const SegmentSummary summary = read_frames(*previous);
    if (summary.sealed) {
      if (newest.has_header) return;
      refuse_damage(storage_, newest.number, 0, "not the header of a segment");
    }
    if (newest.has_header && newest.header.start != summary.end) {
      refuse_damage(storage_, previous->number, summary.end_offset,
                    "no frame, though the next segment follows on one");
    }
  }
  scan_.never_began = newest.number;
  candidates_.pop_back();
}

void Scanner::check_headers() const {
  for (const Candidate& candidate : candidates_) {
    if (!candidate.has_header) {
      refuse_damage(storage_, candidate.number, 0, "not the header of a segment");
    }
    if (candidate.header.number != candidate.number) {
      refuse_damage(
          storage_, candidate.number, 32,
          "this is segment " + std::to_string(candidate.header.number) + " under another's name");
    }
    if (candidate.header.journal != candidates_.back().header.journal) {
      refuse_damage(storage_, candidate.number, 16, "it belongs to another journal");
    }
  }
}

// Whether there is nothing but zeros behind the header.
bool Scanner::is_empty(const Candidate& candidate) {
  const auto file = open(candidate.number);
  SegmentReader reader(*file, path_of(storage_, candidate.number));
  return reader.look_behind(kSegmentHeaderSize).size == 0;
}

const Candidate* Scanner::before(const Candidate& candidate) const {
  for (const Candidate& other : candidates_) {
    if (other.number + 1 == candidate.number) return &other;
  }
  return nullptr;
}

SegmentSummary Scanner::read_frames(const Candidate& candidate) {
  const auto file = open(candidate.number);
  SegmentReader reader(*file, path_of(storage_, candidate.number));
  SegmentSummary summary{.header = candidate.header,
                         .size = reader.size(),
                         .end = candidate.header.start,
                         .engine_time = candidate.header.engine_time,
                         .wall_ns = candidate.header.opened.wall_ns};
  Progress progress(log_, "checking " + segment_name(candidate.number), summary.size);
  Frame frame;
  while (!summary.sealed && reader.next(&frame)) {
    if (frame.header.position != summary.end) {
      refuse_damage(storage_, candidate.number, frame.offset, "a frame that belongs elsewhere");
    }
    if (frame.header.synced >= frame.header.position) summary.unknown_offset = frame.offset;
    ++summary.frames;
    summary.end = frame.header.end();
    summary.complete |= frame.header.completes;
    summary.sealed = frame.header.seals;
    summary.closed = frame.closes();
    summary.engine_time = std::max(summary.engine_time, frame.header.engine_time);
    summary.wall_ns = frame.header.wall_ns;
    progress.advance(kFrameHeaderSize + frame.payload.size());
  }
  summary.end_offset = reader.offset();
  return summary;
}

void Scanner::check_tail(const SegmentSummary& last) {
  if (last.sealed) {
    refuse_damage(storage_, last.number() + 1, 0, "the segment is missing");
  }
  const auto file = open(last.number());
  SegmentReader reader(*file, path_of(storage_, last.number()));
  const SegmentReader::Rest rest = reader.look_behind(last.end_offset);
  if (rest.synced > last.end) {
    refuse_damage(storage_, last.number(), last.end_offset,
                  "no frame, though one was durable here: a later one says so");
  }
  scan_.torn_size = rest.size;
}

SegmentSummary Scanner::read_sealed(const Candidate& candidate, const SegmentSummary& next) {
  const SegmentSummary summary = read_frames(candidate);
  if (!summary.sealed || summary.end != next.header.start) {
    refuse_damage(storage_, candidate.number, summary.end_offset,
                  "no frame, though the next segment follows on one");
  }
  return summary;
}

std::unique_ptr<StorageFile> open(Storage& storage, std::uint64_t number) {
  std::unique_ptr<StorageFile> file;
  check(path_of(storage, number), storage.open(segment_name(number), &file));
  return file;
}

// With zeros, which is what was there before: so its space stays a reserve for a disk that is full.
void cut_tail(Storage& storage, const LogScan& scan, const Log& log) {
  const SegmentSummary& last = scan.segments.back();
  const std::string path = path_of(storage, last.number());
  const auto file = open(storage, last.number());
  const std::string zeros(std::min<std::uint64_t>(scan.torn_size, kCopySize), '\0');
  for (std::uint64_t done = 0; done < scan.torn_size; done += zeros.size()) {
    const std::size_t size = std::min<std::uint64_t>(zeros.size(), scan.torn_size - done);
    check(path, file->write(last.end_offset + done, {zeros.data(), size}));
  }
  log("journal: " + path + ": cut " + std::to_string(scan.torn_size) + " bytes from byte " +
      std::to_string(last.end_offset) + " on, which are no frame: " +
      (last.closed ? "they are behind the end of a run that was stopped, and nothing is lost"
                   : "what a crash leaves of a write that was not synced yet. If the last run did "
                     "not crash, the disk has damaged what it wrote last"));
}

// Writes again what no frame says was synced. If the last process stopped because a sync had
// failed, that is in the page cache, which takes it for written: a sync alone would leave it there.
void write_again(StorageFile& file, const std::string& path, const SegmentSummary& segment) {
  std::string bytes(kCopySize, '\0');
  for (std::uint64_t at = segment.unknown_offset; at < segment.end_offset;) {
    std::size_t size = std::min<std::uint64_t>(bytes.size(), segment.end_offset - at);
    check(path, file.read(at, {bytes.data(), size}, &size));
    check(path, file.write(at, {bytes.data(), size}));
    if (size == 0) break;  // it became shorter meanwhile
    at += size;
  }
}

std::uint64_t replay_segment(Storage& storage, const SegmentSummary& segment, Progress& progress,
                             const std::function<void(const Event&)>& apply) {
  const auto file = open(storage, segment.number());
  SegmentReader reader(*file, path_of(storage, segment.number()));
  std::uint64_t events = 0;
  Frame frame;
  Event event{};
  while (reader.offset() < segment.end_offset && reader.next(&frame)) {
    std::string_view payload = frame.payload;
    for (; !payload.empty(); ++events) {
      if (!take_event(payload, &event)) {
        refuse_damage(storage, segment.number(), frame.end_offset() - payload.size(),
                      "a record that makes no sense");
      }
      apply(event);
    }
    progress.advance(kFrameHeaderSize + frame.payload.size());
  }
  return events;
}

}  // namespace

LogScan scan(Storage& storage, const Log& log) { return Scanner(storage, log).run(); }

void lock_directory(Storage& storage) {
  std::string owner;
  const Fault fault = storage.lock(&owner);
  if (fault.error == EWOULDBLOCK) {
    throw JournalError(storage.directory() + ": in use by " + owner +
                       "; a journal belongs to one process at a time");
  }
  check(storage.directory(), fault);
}

void repair(Storage& storage, const LogScan& scan, const Log& log) {
  if (scan.torn_size > 0) cut_tail(storage, scan, log);
  for (const SegmentSummary& segment : scan.segments) {
    const auto file = open(storage, segment.number());
    write_again(*file, path_of(storage, segment.number()), segment);
    check(path_of(storage, segment.number()), file->sync());
  }
  if (scan.never_began) {
    check(path_of(storage, *scan.never_began), storage.remove(segment_name(*scan.never_began)));
  }
  check(storage.directory(), storage.sync_directory());
}

std::uint64_t replay(Storage& storage, const LogScan& scan, const Log& log,
                     const std::function<void(const Event&)>& apply) {
  std::uint64_t total = 0;
  for (const SegmentSummary& segment : scan.segments) total += segment.end_offset;
  Progress progress(log, "recovering", total);
  std::uint64_t events = 0;
  for (const SegmentSummary& segment : scan.segments) {
    events += replay_segment(storage, segment, progress, apply);
  }
  return events;
}

Time engine_time_at(const ClockReading& now, const LogScan& scan) {
  if (scan.is_new()) return {now.wall_ns};
  const SegmentSummary& last = scan.segments.back();
  const ClockReading& opened = last.header.opened;
  Time time = last.engine_time;
  if (now.boot_id == opened.boot_id && now.boot_ns >= opened.boot_ns) {
    time.ns = std::max(time.ns, last.header.engine_time.ns + (now.boot_ns - opened.boot_ns));
  } else if (now.wall_ns > last.wall_ns) {
    time.ns += now.wall_ns - last.wall_ns;
  }
  return time;
}

}  // namespace lockd
