#include "journal/inspect.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "journal/testing/journal_fixture.h"

namespace lockd {
namespace {

// Writes down what it is shown.
class Notes final : public Inspector {
 public:
  void segment(const SegmentHeader& header, std::uint64_t) override {
    lines.push_back("segment " + std::to_string(header.number));
  }
  void frame(const Frame& frame) override {
    lines.push_back(std::string("frame") + (frame.header.seals ? " seals" : "") +
                    (frame.header.completes ? " completes" : ""));
  }
  void event(const Event& event) override {
    lines.push_back("event " + std::string(event.key) + " " + std::to_string(event.fence));
  }
  void stray_bytes(std::uint64_t segment, std::uint64_t offset, std::uint64_t size) override {
    lines.push_back("stray " + std::to_string(segment) + ": " + std::to_string(size) + " at " +
                    std::to_string(offset));
  }
  void nonsense(std::uint64_t segment, std::uint64_t offset) override {
    lines.push_back("nonsense " + std::to_string(segment) + " at " + std::to_string(offset));
  }

  std::vector<std::string> lines;
};

// Two runs: a and b, then c.
MemoryStorage::Files two_runs() {
  MemoryStorage storage;
  for (const auto& events :
       {std::vector{granted("a", 1), granted("b", 2)}, std::vector{granted("c", 3)}}) {
    LogJournal journal(storage, small_options());
    recover_all(journal);
    journal.append(events);
    journal.turn();
  }
  return storage.files();
}

TEST(Inspect, ShowsEverythingInOrderAndChangesNothing) {
  MemoryStorage storage(two_runs());
  Notes notes;
  inspect(storage, notes);
  EXPECT_EQ(notes.lines,
            (std::vector<std::string>{"segment 1", "frame", "event a 1", "event b 2", "frame seals",
                                      "segment 2", "frame", "event c 3"}));
  const Verdict verdict = verify(storage);
  EXPECT_TRUE(verdict.sound) << verdict.problem;
  EXPECT_EQ(verdict.segments, 2U);
  EXPECT_EQ(verdict.frames, 3U);
  EXPECT_EQ(verdict.events, 3U);
  EXPECT_EQ(verdict.torn_size, 0U);
  EXPECT_TRUE(storage.operations.empty());
}

TEST(Inspect, ShowsATornTailAndDamage) {
  MemoryStorage torn(two_runs());
  std::string bytes = torn.bytes(segment_name(2));
  const std::size_t end = bytes.find_last_not_of('\0') + 1;
  bytes.replace(end, 3, "xyz");
  torn.set_bytes(segment_name(2), bytes);
  Notes notes;
  inspect(torn, notes);
  EXPECT_EQ(notes.lines.back(), "stray 2: 3 at " + std::to_string(end));
  EXPECT_TRUE(verify(torn).sound);
  EXPECT_EQ(verify(torn).torn_size, 3U);

  MemoryStorage damaged(two_runs());
  bytes = damaged.bytes(segment_name(1));
  bytes[kSegmentHeaderSize + 60] ^= 1;
  damaged.set_bytes(segment_name(1), bytes);
  notes.lines.clear();
  inspect(damaged, notes);
  EXPECT_EQ(notes.lines[1].substr(0, 8), "stray 1:");
  EXPECT_FALSE(verify(damaged).sound);
  EXPECT_NE(verify(damaged).problem.find(segment_name(1) + ", byte 96"), std::string::npos);
}

TEST(Inspect, ShowsWhatMakesNoSense) {
  MemoryStorage storage;
  {
    LogJournal journal(storage, small_options());
    recover_all(journal);
    journal.append(std::vector{granted("a", 1), fence_floor(kFenceMax + 1)});
    journal.turn();
  }
  storage.set_bytes(segment_name(2), "not a segment");
  Notes notes;
  inspect(storage, notes);
  EXPECT_EQ(notes.lines[2], "event a 1");
  EXPECT_EQ(notes.lines[3].substr(0, 13), "nonsense 1 at");
  EXPECT_EQ(notes.lines[4], "nonsense 2 at 0");
  EXPECT_FALSE(verify(storage).sound);
}

}  // namespace
}  // namespace lockd
