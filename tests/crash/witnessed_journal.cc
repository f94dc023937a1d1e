#include "crash/witnessed_journal.h"

#include <utility>

#include "journal/format.h"

namespace lockd::crash {
namespace {

std::size_t encoded_size(std::span<const Event> events) {
  std::size_t size = 0;
  char bytes[kRecordSizeMax];
  for (const Event& event : events) size += static_cast<std::size_t>(encode(event, bytes) - bytes);
  return size;
}

}  // namespace

Position WitnessedJournal::append(std::span<const Event> events) {
  if (heard_ != nullptr) {
    for (const Event& event : events) heard_->apply(event);
    return 0;
  }
  const Position end = journal_.append(events);
  if (scribe_ != nullptr) {
    // The journal may have put records of its own in between: it is from its end that it is
    // measured.
    scribe_->appended(end - encoded_size(events), end, events, describing_, clock_.now());
  }
  return end;
}

void WitnessedJournal::attach(Journal::Source* source) {
  source_ = source;
  journal_.attach(source == nullptr ? nullptr : this);
}

bool WitnessedJournal::describe_some(bool from_start) {
  describing_ = true;
  snapshot_open_ = source_->describe_some(from_start);
  describing_ = false;
  return snapshot_open_;
}

Holds WitnessedJournal::describe() {
  Holds holds;
  Holds* const before = std::exchange(heard_, &holds);
  for (bool more = true, from_start = true; more; from_start = false) {
    more = source_->describe_some(from_start);
  }
  heard_ = before;
  return holds;
}

}  // namespace lockd::crash
