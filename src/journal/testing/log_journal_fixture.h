// A LogJournal in a directory in memory, and what it has done there, for the tests of its turns.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "journal/log_journal.h"
#include "journal/testing/journal_fixture.h"

namespace lockd {

class LogJournalTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kMs = 1'000'000;  // in ns

  void open(LogJournalOptions options = small_options()) {
    options.log = [this](std::string_view line) { log_.emplace_back(line); };
    journal_.reset();
    journal_ = std::make_unique<LogJournal>(storage_, options);
    recovered_ = recover_all(*journal_);
    source_ = std::make_unique<TestSource>(*journal_);
    storage_.operations.clear();
  }

  Position append(const Event& event) { return journal_->append(std::vector{event}); }

  // Turns until nothing is left to do at once.
  void settle() {
    while (journal_->turn() == Duration::zero()) {
    }
  }

  bool logged(std::string_view words) const {
    return std::any_of(log_.begin(), log_.end(), [&](const std::string& line) {
      return line.find(words) != std::string::npos;
    });
  }

  // More than any reserve has room for.
  void hold_much() {
    for (Fence fence = 1; fence <= 100; ++fence) {
      source_->held.emplace_back("much-" + std::to_string(fence), fence);
    }
  }

  // Frames until the segment is long enough to be followed by another.
  void fill_segment() {
    const std::string first = segment_name(newest());
    for (int i = 0; i < 200 && storage_.files().contains(first) && newest() == newest_at_start_;
         ++i) {
      append(renewed("filler", 1));
      journal_->turn();
    }
  }

  // The number of the newest segment.
  std::uint64_t newest() const { return *segment_number(storage_.files().rbegin()->first); }

  MemoryStorage storage_;
  std::vector<std::string> log_;
  std::unique_ptr<LogJournal> journal_;
  std::unique_ptr<TestSource> source_;
  std::vector<Record> recovered_;
  std::uint64_t newest_at_start_ = 1;
};

}  // namespace lockd
