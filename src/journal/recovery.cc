#include "journal/recovery.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include "journal/format.h"
#include "journal/segment_reader.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

constexpr std::size_t kCopySize = std::size_t{64} << 10;

std::unique_ptr<StorageFile> open(Storage& storage, std::uint64_t number) {
  std::unique_ptr<StorageFile> file;
  check(path_of(storage, number), storage.open(segment_name(number), &file));
  return file;
}

void cut_tail(Storage& storage, const LogScan& scan, const Log& log) {
  const SegmentSummary& last = scan.segments.back();
  const std::string path = path_of(storage, last.number());
  check(path, open(storage, last.number())->truncate(last.end_offset));
  log("journal: " + path + ": cut " + std::to_string(scan.torn_size) + " bytes from byte " +
      std::to_string(last.end_offset) +
      " on, the rest of a write that a crash interrupted; nothing acknowledged was in it");
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
