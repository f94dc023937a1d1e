// What is refused, what is cut, and what is taken for what it is.
#include "journal/recovery.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/coding.h"
#include "base/crc.h"
#include "journal/testing/journal_fixture.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

using Files = MemoryStorage::Files;

const std::string kFirst = segment_name(1);
const std::string kSecond = segment_name(2);
const std::string kThird = segment_name(3);

// A run for each segment, none of which has finished a snapshot: all are needed. Two frames each.
Files three_runs(std::vector<Record>* history = nullptr, JournalId id = {0xab}) {
  MemoryStorage storage;
  Fence fence = 0;
  for (int run = 0; run < 3; ++run) {
    LogJournalOptions options = small_options();
    options.id = id;
    LogJournal journal(storage, options);
    recover_all(journal);
    for (int frame = 0; frame < 2; ++frame) {
      const std::string key = "key-" + std::to_string(++fence);
      const Event event = granted(key, fence);
      journal.append(std::vector{event});
      journal.turn();
      if (history != nullptr) history->push_back(record_of(event));
    }
  }
  return storage.files();
}

LogScan scan_of(const Files& files) {
  MemoryStorage storage(files);
  return scan(storage, [](std::string_view) {});
}

std::string refusal_of(const Files& files) {
  try {
    scan_of(files);
    return "";
  } catch (const JournalError& error) {
    return error.what();
  }
}

#define EXPECT_REFUSED(files, words) \
  EXPECT_NE(refusal_of(files).find(words), std::string::npos) << "said: " << refusal_of(files)

TEST(LogScan, AnEmptyDirectoryIsANewJournal) {
  const LogScan found = scan_of({{"lock", "1\n"}, {"notes.txt", "not ours"}});
  EXPECT_TRUE(found.is_new());
  EXPECT_EQ(found.end(), 0U);
}

TEST(LogScan, ReadsAllSegmentsThatAreNeeded) {
  std::vector<Record> history;
  const Files files = three_runs(&history);
  ASSERT_EQ(files.size(), 3U);
  const LogScan found = scan_of(files);
  ASSERT_EQ(found.segments.size(), 3U);
  EXPECT_TRUE(found.segments[0].sealed);
  EXPECT_TRUE(found.segments[1].sealed);
  EXPECT_FALSE(found.segments[2].sealed);
  EXPECT_EQ(found.torn_size, 0U);
  EXPECT_EQ(read_all(files), history);
}

TEST(LogScan, AMissingSegmentIsRefused) {
  for (const std::string& name : {kFirst, kSecond, kThird}) {
    Files files = three_runs();
    files.erase(name);
    EXPECT_REFUSED(files, name + ", byte 0: the segment is missing");
  }
}

TEST(LogScan, SwappedDuplicatedAndForeignSegmentsAreRefused) {
  Files swapped = three_runs();
  std::swap(swapped[kFirst], swapped[kSecond]);
  EXPECT_REFUSED(swapped, "under another's name");

  Files duplicated = three_runs();
  duplicated[segment_name(4)] = duplicated[kThird];
  EXPECT_REFUSED(duplicated, kThird.substr(0, 8));  // named, whatever is found first
  Files over = three_runs();
  over[kSecond] = over[kFirst];
  EXPECT_REFUSED(over, kSecond + ", byte 32: this is segment 1 under another's name");

  Files foreign = three_runs();
  foreign[kSecond] = three_runs(nullptr, {0xcd}).at(kSecond);
  EXPECT_REFUSED(foreign, kSecond + ", byte 16: it belongs to another journal");
}

TEST(LogScan, AFutureVersionIsRefusedByName) {
  for (const std::string& name : {kFirst, kSecond, kThird}) {
    Files files = three_runs();
    store(files[name].data() + 8, std::uint32_t{2});
    EXPECT_REFUSED(files, name + ", byte 8: format version 2, and this program knows version 1");
  }
}

TEST(LogScan, DamageIsRefusedWithFileAndByte) {
  const LogScan whole = scan_of(three_runs());
  for (std::size_t i = 0; i < 3; ++i) {
    Files files = three_runs();
    files[segment_name(i + 1)][kSegmentHeaderSize + 50] ^= 1;  // in the first frame's payload
    EXPECT_REFUSED(files, segment_name(i + 1) + ", byte 96: no frame, though");
  }
  // The seal of an older segment.
  Files files = three_runs();
  files[kFirst][whole.segments[0].end_offset - 1] ^= 1;
  EXPECT_REFUSED(files, kFirst + ", byte " +
                            std::to_string(whole.segments[0].end_offset - kFrameHeaderSize) +
                            ": no frame, though the next segment follows on one");
  EXPECT_NE(refusal_of(files).find("Restore the directory from a copy"), std::string::npos);
}

TEST(LogScan, AZeroedSectorInTheMiddleIsDamage) {
  Files files = three_runs();
  std::string& last = files[kThird];
  last.replace(kSegmentHeaderSize, kFrameHeaderSize, kFrameHeaderSize, '\0');
  EXPECT_REFUSED(files, kThird + ", byte 96: no frame, though one was durable here");
}

TEST(LogScan, TheLastFrameIsATornTailWhateverIsWrongWithIt) {
  std::vector<Record> history;
  const Files whole = three_runs(&history);
  history.pop_back();
  const std::uint64_t end = scan_of(whole).segments.back().end_offset;
  for (std::uint64_t at = end - 60; at < end; ++at) {
    Files files = whole;
    files[kThird][at] ^= 0x10;
    const LogScan found = scan_of(files);
    EXPECT_GT(found.torn_size, 0U);
    EXPECT_EQ(read_all(files), history);
  }
}

TEST(LogScan, ASegmentThatNeverBeganIsLeftOut) {
  std::vector<Record> history;
  const Files three = three_runs(&history);
  const SegmentHeader header{.journal = {0xab}, .number = 4, .start = scan_of(three).end()};
  const std::string whole = encode(header);
  for (const std::string& bytes : {std::string(), whole.substr(0, 50), std::string(5000, '\0'),
                                   whole, whole + std::string(5000, '\0')}) {
    Files files = three;
    files[segment_name(4)] = bytes;
    const LogScan found = scan_of(files);
    EXPECT_EQ(found.never_began, 4U);
    EXPECT_EQ(found.segments.size(), 3U);
    EXPECT_EQ(read_all(files), history);
  }
  // With anything in it, it began, and the seal before it is missing.
  Files files = three;
  files[segment_name(4)] = whole + "x";
  EXPECT_REFUSED(files, kThird);
  files[segment_name(4)] = whole.substr(0, 50) + std::string(100, 'x');
  EXPECT_REFUSED(files, segment_name(4) + ", byte 0: not the header of a segment");
}

TEST(LogScan, ATailCutBeforeASegmentThatWasMadeIsDamage) {
  Files files = three_runs();
  const std::string next = encode({.journal = {0xab}, .number = 4, .start = scan_of(files).end()});
  files[segment_name(4)] = next;
  const std::uint64_t end = scan_of(files).segments.back().end_offset;
  files[kThird][end - 1] ^= 1;
  EXPECT_REFUSED(files, kThird + ", byte ");
}

TEST(LogScan, ASealedSegmentNeedsTheHeaderOfTheNext) {
  Files files = three_runs();
  files[kThird] = std::string(5000, '\0');
  EXPECT_REFUSED(files, kThird + ", byte 0: not the header of a segment");
  files[kThird] = "";
  EXPECT_REFUSED(files, kThird + ", byte 0: not the header of a segment");
}

TEST(LogScan, AFirstSegmentThatNeverBeganIsANewJournal) {
  for (const std::string& bytes : {std::string(), std::string(50, 'x'), std::string(5000, '\0')}) {
    const LogScan found = scan_of({{kFirst, bytes}});
    EXPECT_TRUE(found.is_new());
    EXPECT_EQ(found.never_began, 1U);
  }
  EXPECT_REFUSED((Files{{kSecond, ""}}), kSecond + ", byte 0: not the header of a segment");
}

// A frame whose header holds and whose length is a lie: nothing is made room for.
TEST(LogScan, ALyingLengthAllocatesNothing) {
  std::vector<Record> history;
  const Files whole = three_runs(&history);
  const SegmentSummary last = scan_of(whole).segments.back();
  for (const std::uint32_t length :
       {0U, 1U, 0x7fffffffU, 0xffffffffU, static_cast<std::uint32_t>(last.size) + 1,
        static_cast<std::uint32_t>(kPayloadMax), static_cast<std::uint32_t>(kPayloadMax) + 1}) {
    char header[kFrameHeaderSize];
    encode({.payload_size = length, .payload_crc = 1, .position = last.end, .synced = last.end},
           header);
    MemoryStorage storage(whole);
    std::string bytes = storage.bytes(kThird);
    bytes.replace(last.end_offset, sizeof header, header, sizeof header);
    storage.set_bytes(kThird, bytes);
    const LogScan found = scan(storage, [](std::string_view) {});
    EXPECT_EQ(found.segments.back().end_offset, last.end_offset) << length;
    EXPECT_GT(found.torn_size, 0U);
    EXPECT_LE(storage.read_max, last.size) << length;
  }
}

TEST(LogScan, LeftoversBeforeAnAccountAreOfNoConcern) {
  MemoryStorage storage;
  Files before;
  {
    LogJournal journal(storage, small_options());
    recover_all(journal);
    journal.append(std::vector{granted("a", 1)});
    journal.turn();
    before = storage.files();
  }
  LogJournal journal(storage, small_options());
  recover_all(journal);
  TestSource source(journal);
  source.held = {{"a", 1}};
  source.last_fence = 1;
  journal.attach(&source);
  while (journal.turn() == Duration::zero()) {
  }
  journal.attach(nullptr);
  Files files = storage.files();
  ASSERT_EQ(files.size(), 1U) << "the snapshot is complete";
  files[kFirst] = before[kFirst];  // a removal that a crash undid; not even sealed
  const LogScan found = scan_of(files);
  EXPECT_EQ(found.older, std::vector<std::uint64_t>{1});
  ASSERT_EQ(found.segments.size(), 1U);
  EXPECT_TRUE(found.segments[0].complete);
  EXPECT_EQ(read_all(files), (std::vector{record_of(granted("a", 1)), record_of(fence_floor(1))}));
}

}  // namespace
}  // namespace lockd
