// What the tests of the journal share: a history to write, and how to read it back.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "journal/format.h"
#include "journal/log_journal.h"
#include "journal/testing/memory_storage.h"

namespace lockd {

// An event as its record, so that events can be kept and compared.
using Record = std::string;

inline Record record_of(const Event& event) {
  char bytes[kRecordSizeMax];
  return {bytes, encode(event, bytes)};
}

inline Event granted(std::string_view key, Fence fence, Holder holder = "cart-7") {
  return {.type = Event::Type::granted,
          .key = key,
          .holder = holder,
          .fence = fence,
          .ttl = std::chrono::seconds(30),
          .expires_at = {1'700'000'030'000'000'000}};
}

inline Event renewed(std::string_view key, Fence fence) {
  Event event = granted(key, fence);
  event.type = Event::Type::renewed;
  return event;
}

inline Event ended(std::string_view key, Fence fence, EndCause cause = EndCause::released) {
  return {.type = Event::Type::ended, .cause = cause, .key = key, .fence = fence};
}

inline Event fence_floor(Fence fence) { return {.type = Event::Type::fence_floor, .fence = fence}; }

// Small segments, so that a test sees many of them.
inline LogJournalOptions small_options() {
  LogJournalOptions options;
  options.segment_size = 4096;
  options.segment = {.reserve = 1024, .step_min = 1024, .step_max = 4096};
  options.describe_ahead = 2048;
  options.id = JournalId{0xab, 0xcd};
  return options;
}

// Recovers what is in `storage`. Throws JournalError as opening does.
inline std::vector<Record> recover_all(LogJournal& journal) {
  std::vector<Record> records;
  journal.recover([&](const Event& event) { records.push_back(record_of(event)); });
  return records;
}

// Only reads: what a recovery would pass on.
inline std::vector<Record> read_all(const MemoryStorage::Files& files) {
  MemoryStorage storage(files);
  LogJournal journal(storage, small_options());
  return recover_all(journal);
}

// A table of the simplest kind, which describes itself a few keys at a time.
class TestSource final : public Journal::Source {
 public:
  explicit TestSource(Journal& journal) : journal_(journal) {}

  void progressed() noexcept override { ++progress; }

  bool describe_some(bool from_start) override {
    if (from_start) next_ = 0;
    for (std::size_t i = 0; i < 4 && next_ < held.size(); ++i, ++next_) {
      journal_.append(std::vector{granted(held[next_].first, held[next_].second)});
    }
    if (next_ < held.size()) return true;
    journal_.append(std::vector{fence_floor(last_fence)});
    ++snapshots;
    return false;
  }

  bool fits(std::size_t size) override {
    std::size_t sum = 0;
    for (const auto& [key, fence] : held) sum += 64 + key.size();
    return sum <= size;
  }

  // Of a journal that others share.
  bool apply(const Event&) override { return false; }
  void lead(Position, Duration) override {}

  std::vector<std::pair<std::string, Fence>> held;
  Fence last_fence = 0;
  int progress = 0;
  int snapshots = 0;

 private:
  Journal& journal_;
  std::size_t next_ = 0;
};

}  // namespace lockd
