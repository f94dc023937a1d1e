#include "journal/inspect.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "journal/format.h"
#include "journal/posix_storage.h"
#include "journal/recovery.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

std::vector<std::uint64_t> segment_numbers(Storage& storage) {
  std::vector<std::string> names;
  check(storage.directory(), storage.list(&names));
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names) {
    if (const auto number = segment_number(name)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

void inspect_frame(std::uint64_t segment, const Frame& frame, Inspector& inspector) {
  inspector.frame(frame);
  std::string_view payload = frame.payload;
  Event event{.type = Event::Type::fence_floor};
  while (take_event(payload, &event)) inspector.event(event);
  if (!payload.empty()) inspector.nonsense(segment, frame.end_offset() - payload.size());
}

void inspect_segment(Storage& storage, std::uint64_t number, Inspector& inspector) {
  std::unique_ptr<StorageFile> file;
  check(path_of(storage, number), storage.open(segment_name(number), &file));
  SegmentReader reader(*file, path_of(storage, number));
  SegmentHeader header;
  std::uint32_t version = 0;
  if (reader.read_header(&header, &version) != HeaderFault::none) {
    return inspector.nonsense(number, 0);
  }
  inspector.segment(header, reader.size());
  Frame frame;
  while (reader.next(&frame)) inspect_frame(number, frame, inspector);
  const SegmentReader::Rest rest = reader.look_behind(reader.offset());
  if (rest.size > 0) inspector.stray_bytes(number, reader.offset(), rest.size);
}

}  // namespace

void Inspector::segment(const SegmentHeader&, std::uint64_t) {}
void Inspector::frame(const Frame&) {}
void Inspector::event(const Event&) {}
void Inspector::stray_bytes(std::uint64_t, std::uint64_t, std::uint64_t) {}
void Inspector::nonsense(std::uint64_t, std::uint64_t) {}

void inspect(Storage& storage, Inspector& inspector) {
  for (const std::uint64_t number : segment_numbers(storage)) {
    inspect_segment(storage, number, inspector);
  }
}

Verdict verify(Storage& storage) {
  const Log silent = [](std::string_view) {};
  Verdict verdict;
  try {
    const LogScan found = scan(storage, silent);
    verdict.segments = found.segments.size();
    verdict.torn_size = found.torn_size;
    for (const SegmentSummary& segment : found.segments) verdict.frames += segment.frames;
    verdict.events = replay(storage, found, silent, [](const Event&) {});
    verdict.sound = true;
  } catch (const JournalError& error) {
    verdict.problem = error.what();
  }
  return verdict;
}

void inspect(const std::string& directory, Inspector& inspector) {
  PosixStorage storage(directory, PosixStorage::Access::read);
  inspect(storage, inspector);
}

Verdict verify(const std::string& directory) {
  PosixStorage storage(directory, PosixStorage::Access::read);
  return verify(storage);
}

}  // namespace lockd
