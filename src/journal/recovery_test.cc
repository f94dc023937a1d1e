// Time over a restart, and that what is recovered rests on the disk before anything rests on it.
#include "journal/recovery.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "journal/testing/journal_fixture.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

constexpr std::uint64_t kOneSecond = 1'000'000'000;
constexpr std::uint64_t kHour = 3600 * kOneSecond;

class TimeTest : public testing::Test {
 protected:
  // A run that begins at the wall clock's time, lasts ten seconds, and writes after six.
  void SetUp() override {
    LogJournal journal(storage_, small_options());
    recover_all(journal);
    begun_ = journal.now();
    EXPECT_EQ(begun_.ns, storage_.now.wall_ns);
    storage_.advance(6 * kOneSecond);
    journal.append(std::vector{granted("a", 1)});
    journal.turn();
    storage_.advance(4 * kOneSecond);
    EXPECT_EQ(journal.now().ns, begun_.ns + 10 * kOneSecond);
  }

  // Seconds since the first run began, as the next one sees it.
  std::uint64_t seconds_at_next_start() {
    LogJournal journal(storage_, small_options());
    return (journal.now().ns - begun_.ns) / kOneSecond;
  }

  MemoryStorage storage_;
  Time begun_;
};

TEST_F(TimeTest, OnTheSameBootItGoesOnByTheBootClock) {
  storage_.now.boot_ns += 5 * kOneSecond;
  EXPECT_EQ(seconds_at_next_start(), 15U);
}

TEST_F(TimeTest, OnTheSameBootTheWallClockIsOfNoConcern) {
  storage_.now.boot_ns += 5 * kOneSecond;
  const std::uint64_t wall_ns = storage_.now.wall_ns;
  storage_.now.wall_ns = wall_ns + kHour;
  EXPECT_EQ(seconds_at_next_start(), 15U);
  storage_.now.wall_ns = wall_ns - kHour;
  EXPECT_EQ(seconds_at_next_start(), 15U);
  storage_.now.wall_ns = 0;
  EXPECT_EQ(seconds_at_next_start(), 15U);
}

TEST_F(TimeTest, OverARebootTheWallClockTellsWhatHasPassed) {
  storage_.now.boot_id = {2};
  storage_.now.boot_ns = 3 * kOneSecond;
  storage_.now.wall_ns += 100 * kOneSecond;  // since the last frame 104
  EXPECT_EQ(seconds_at_next_start(), 110U);
}

TEST_F(TimeTest, OverARebootAWallClockThatWentBackStopsTimeAtMost) {
  storage_.now.boot_id = {2};
  storage_.now.boot_ns = 3 * kOneSecond;
  storage_.now.wall_ns -= kHour;
  EXPECT_EQ(seconds_at_next_start(), 6U) << "the last frame's";
}

TEST_F(TimeTest, ABootClockThatWentBackOnTheSameBootIsNotBelieved) {
  storage_.now.boot_ns = 1;  // as in another time namespace
  storage_.now.wall_ns += 2 * kOneSecond;
  EXPECT_EQ(seconds_at_next_start(), 12U);
}

TEST_F(TimeTest, ItNeverGoesBackOverAnyNumberOfRuns) {
  Time last = begun_;
  for (int run = 0; run < 20; ++run) {
    if (run % 3 == 0) {
      storage_.now.boot_id[0] = static_cast<unsigned char>(run + 10);
      storage_.now.boot_ns = kOneSecond;
    }
    if (run % 4 == 1) storage_.now.wall_ns -= kHour;
    LogJournal journal(storage_, small_options());
    recover_all(journal);
    EXPECT_GE(journal.now(), last);
    storage_.advance(kOneSecond);
    journal.append(std::vector{granted("a", 1)});
    journal.turn();
    last = journal.now();
  }
}

TEST(Recovery, WhatWasReadIsSyncedBeforeAnythingRestsOnIt) {
  MemoryStorage storage;
  {
    LogJournal journal(storage, small_options());
    recover_all(journal);
    journal.append(std::vector{granted("a", 1)});
    journal.turn();
  }
  const std::string first = segment_name(1);
  const std::string second = segment_name(2);
  const std::size_t end = storage.bytes(first).find_last_not_of('\0') + 1;
  storage.set_bytes(first, storage.bytes(first).substr(0, end) + "torn");
  storage.operations.clear();
  std::vector<std::string> log;
  LogJournalOptions options = small_options();
  options.log = [&](std::string_view line) { log.emplace_back(line); };
  LogJournal journal(storage, options);
  recover_all(journal);
  EXPECT_EQ(storage.operations,
            (std::vector<std::string>{
                "write " + first, "write " + first, "sync " + first, "sync directory /memory",
                "create " + second, "write " + second, "allocate " + second, "sync " + second,
                "sync directory /memory", "write " + first, "sync " + first}));
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(log[0], "journal: /memory/" + first + ": cut 4 bytes from byte " + std::to_string(end) +
                        " on, which are no frame: what a crash leaves of a write that was not "
                        "synced yet. If the last run did not crash, the disk has damaged what it "
                        "wrote last");
}

// What is behind the end of a run that was stopped was never more than space.
TEST(Recovery, WhatIsCutBehindAStopIsNoLoss) {
  MemoryStorage storage;
  {
    LogJournal journal(storage, small_options());
    recover_all(journal);
    journal.append(std::vector{granted("a", 1)});
    journal.close();
  }
  const std::string first = segment_name(1);
  const std::size_t end = storage.bytes(first).find_last_not_of('\0') + 1;
  storage.set_bytes(first, storage.bytes(first).substr(0, end) + "torn");
  std::vector<std::string> log;
  LogJournalOptions options = small_options();
  options.log = [&](std::string_view line) { log.emplace_back(line); };
  LogJournal journal(storage, options);
  EXPECT_EQ(recover_all(journal), std::vector{record_of(granted("a", 1))});
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(log[0], "journal: /memory/" + first + ": cut 4 bytes from byte " + std::to_string(end) +
                        " on, which are no frame: they are behind the end of a run that was "
                        "stopped, and nothing is lost");
}

TEST(Recovery, ARecordThatMakesNoSenseIsRefused) {
  MemoryStorage storage;
  {
    LogJournal journal(storage, small_options());
    recover_all(journal);
    journal.append(std::vector{granted("a", 1), fence_floor(kFenceMax + 1)});
    journal.turn();
  }
  try {
    LogJournal journal(storage, small_options());
    recover_all(journal);
    FAIL();
  } catch (const JournalError& error) {
    const std::uint64_t at =
        kSegmentHeaderSize + kFrameHeaderSize + record_of(granted("a", 1)).size();
    EXPECT_NE(std::string(error.what())
                  .find(segment_name(1) + ", byte " + std::to_string(at) +
                        ": a record that makes no sense"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lockd
