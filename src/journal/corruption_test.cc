// Every truncation and every flipped bit of a log: an image is recovered to exactly what its whole
// frames say, or refused. Nothing is forgotten silently.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/testing/test_size.h"
#include "journal/recovery.h"
#include "journal/testing/journal_fixture.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

const Log kSilent = [](std::string_view) {};

// All images are tried in a plain build. A sanitizer looks for other things, at ten times the cost:
// there every seventh is, so that each bit of a byte has its turn.
constexpr std::uint64_t kStep = kSanitized ? 7 : 1;

// A log of one segment, cut to the size of its frames, and what was acknowledged when.
struct History {
  MemoryStorage::Files files;
  std::vector<Record> records;
  struct Ack {
    std::uint64_t offset;  // where its frame ends
    std::size_t records;   // that are in force then
  };
  std::vector<Ack> acks;

  // How many records an image of this size has.
  std::size_t records_within(std::uint64_t size) const {
    std::size_t count = 0;
    for (const Ack& ack : acks) {
      if (ack.offset <= size) count = ack.records;
    }
    return count;
  }
};

Event random_event(std::mt19937_64& random, Fence* fence) {
  static const std::string keys[] = {"stone-42", "k", std::string(200, 'x'), "orders/7/line"};
  const std::string& key = keys[random() % 4];
  switch (random() % 4) {
    case 0: return renewed(key, *fence);
    case 1: return ended(key, *fence);
    case 2: return granted(key, ++*fence, Holder::of_secret(random()));
    default: return granted(key, ++*fence);
  }
}

enum class Last { killed, stopped };

// Frames of one to six events, each synced before the next is written, until the log has `size`
// bytes.
History make_history(std::uint64_t size, Last last = Last::killed) {
  History history;
  MemoryStorage storage;
  LogJournal journal(storage, small_options());
  recover_all(journal);
  std::mt19937_64 random(size);
  Fence fence = 1;
  const std::string name = segment_name(1);
  std::uint64_t offset = kSegmentHeaderSize;
  while (offset < size) {
    std::vector<Event> events;
    const std::size_t count = 1 + random() % 6;
    for (std::size_t i = 0; i < count; ++i) events.push_back(random_event(random, &fence));
    const Position before = journal.durable();
    const Position position = journal.append(events);
    journal.turn();
    EXPECT_EQ(journal.durable(), position);
    for (const Event& event : events) history.records.push_back(record_of(event));
    offset += kFrameHeaderSize + (position - before);
    history.acks.push_back({offset, history.records.size()});
    storage.advance(1'000'000);
  }
  if (last == Last::stopped) {
    journal.close();
    offset += kFrameHeaderSize;
  }
  history.files[name] = storage.bytes(name).substr(0, offset);
  return history;
}

// How many records are recovered; they must be the first of the history. Throws as opening does.
std::size_t recover_prefix(Storage& storage, const History& history) {
  std::size_t count = 0;
  const LogScan found = scan(storage, kSilent);
  replay(storage, found, kSilent, [&](const Event& event) {
    ASSERT_LT(count, history.records.size());
    char bytes[kRecordSizeMax];
    ASSERT_EQ(std::string_view(bytes, encode(event, bytes)), history.records[count]);
    ++count;
  });
  return count;
}

TEST(Corruption, EveryTruncationRecoversToExactlyWhatItHolds) {
  constexpr std::uint64_t kSize = 65'536;
  const History history = make_history(kSize);
  const std::string name = segment_name(1);
  const std::string whole = history.files.at(name);
  ASSERT_GE(whole.size(), kSize);
  MemoryStorage storage;
  for (std::uint64_t size = 0; size <= kSize; size += kStep) {
    storage.set_bytes(name, whole.substr(0, size));
    ASSERT_EQ(recover_prefix(storage, history), history.records_within(size)) << size;
  }
}

// The whole way, with cutting and going on; and once more after that.
TEST(Corruption, ATruncatedLogGoesOn) {
  const History history = make_history(8192);
  const std::string name = segment_name(1);
  for (std::uint64_t size = 0; size <= 8192; size += 7) {
    MemoryStorage storage(MemoryStorage::Files{{name, history.files.at(name).substr(0, size)}});
    const std::size_t kept = history.records_within(size);
    for (int run = 0; run < 2; ++run) {
      LogJournal journal(storage, small_options());
      std::vector<Record> records = recover_all(journal);
      ASSERT_EQ(records.size(), kept + static_cast<std::size_t>(run)) << size;
      ASSERT_TRUE(std::equal(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(kept),
                             history.records.begin()));
      const Position position = journal.append(std::vector{granted("new", 1'000'000)});
      journal.turn();
      ASSERT_EQ(journal.durable(), position);
    }
  }
}

TEST(Corruption, EveryFlippedBitIsFoundUnlessItIsInTheTail) {
  constexpr std::uint64_t kSize = 16'384;
  const History history = make_history(kSize);
  const std::string name = segment_name(1);
  std::string image = history.files.at(name);
  // Nobody can tell the last frame from one that was torn while it was written.
  const History::Ack before_last = history.acks[history.acks.size() - 2];
  std::uint64_t refused = 0;
  std::uint64_t cut = 0;
  MemoryStorage storage;
  for (std::uint64_t bit = 0; bit < 8 * image.size(); bit += kStep) {
    image[bit / 8] ^= static_cast<char>(1 << bit % 8);
    storage.set_bytes(name, image);
    image[bit / 8] ^= static_cast<char>(1 << bit % 8);
    try {
      ASSERT_EQ(recover_prefix(storage, history), before_last.records) << bit;
      ASSERT_GE(bit / 8, before_last.offset) << bit;
      ++cut;
    } catch (const JournalError& error) {
      ASSERT_LT(bit / 8, before_last.offset) << bit << ": " << error.what();
      ++refused;
    }
  }
  EXPECT_GE(refused + cut, 8 * kSize / kStep);
  EXPECT_GE(cut, 8 * (image.size() - before_last.offset) / kStep);
}

// At rest, after a clean stop: the frame that closes the journal vouches for all before it, and
// holds nothing itself.
TEST(Corruption, EveryFlippedBitIsFoundOrHarmlessAfterAStop) {
  constexpr std::uint64_t kSize = 4096;
  const History history = make_history(kSize, Last::stopped);
  const std::string name = segment_name(1);
  std::string image = history.files.at(name);
  const std::uint64_t closing = image.size() - kFrameHeaderSize;
  MemoryStorage storage;
  for (std::uint64_t bit = 0; bit < 8 * image.size(); bit += kStep) {
    image[bit / 8] ^= static_cast<char>(1 << bit % 8);
    storage.set_bytes(name, image + std::string(512, '\0'));
    image[bit / 8] ^= static_cast<char>(1 << bit % 8);
    try {
      ASSERT_EQ(recover_prefix(storage, history), history.records.size()) << bit;
      ASSERT_GE(bit / 8, closing) << bit;
    } catch (const JournalError& error) {
      ASSERT_LT(bit / 8, closing) << bit << ": " << error.what();
    }
  }
}

// Two segments, the first sealed, both with space behind their frames.
TEST(Corruption, FlippedBitsAroundASeal) {
  MemoryStorage original;
  History history;
  for (int run = 0; run < 2; ++run) {
    LogJournal journal(original, small_options());
    recover_all(journal);
    for (Fence fence = 1; fence <= 3; ++fence) {
      const Event event = granted("key", 10 * static_cast<Fence>(run) + fence);
      journal.append(std::vector{event});
      journal.turn();
      history.records.push_back(record_of(event));
    }
  }
  const LogScan whole = scan(original, kSilent);
  ASSERT_EQ(whole.segments.size(), 2U);
  const std::uint64_t frame = kFrameHeaderSize + history.records[0].size();
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string name = segment_name(i + 1);
    const SegmentSummary& segment = whole.segments[i];
    for (std::uint64_t bit = 0; bit < 8 * segment.size; bit += kStep) {
      MemoryStorage storage(original.files());
      std::string image = storage.bytes(name);
      image[bit / 8] ^= static_cast<char>(1 << bit % 8);
      storage.set_bytes(name, image);
      const bool behind = bit / 8 >= segment.end_offset;
      const bool in_last_frame = i == 1 && !behind && bit / 8 >= segment.end_offset - frame;
      try {
        const std::size_t count = recover_prefix(storage, history);
        ASSERT_TRUE(behind || in_last_frame) << name << " bit " << bit;
        ASSERT_EQ(count, in_last_frame ? 5U : 6U) << name << " bit " << bit;
      } catch (const JournalError& error) {
        ASSERT_FALSE(behind || in_last_frame) << name << " bit " << bit << ": " << error.what();
      }
    }
  }
}

// What a crash leaves of several frames that were written for one sync: any of their sectors.
TEST(Corruption, AnyPartOfTheFramesOfOneSyncIsATornTail) {
  constexpr std::size_t kSector = 512;
  const std::string key(kKeySizeMax, 'k');
  MemoryStorage original;
  std::size_t durable = 0;
  {
    LogJournal journal(original, small_options());
    recover_all(journal);
    journal.append(std::vector{granted("before", 1)});
    journal.turn();
    durable = original.bytes(segment_name(1)).find_last_not_of('\0') + 1;
    // Two frames in one turn: together they are more than one may hold.
    journal.append(std::vector<Event>(1500, granted(key, 2, key)));
    journal.append(std::vector<Event>(1500, granted(key, 3, key)));
    journal.turn();
  }
  const std::string whole = original.bytes(segment_name(1));
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    std::string image = whole;
    const std::uint64_t sectors = (whole.size() + kSector - 1) / kSector;
    for (std::uint64_t sector = durable / kSector; sector < sectors; ++sector) {
      if (random() % 2 != 0) continue;
      const std::size_t from = std::max(durable, sector * kSector);
      const std::size_t to = std::min(whole.size(), (sector + 1) * kSector);
      if (from < to) image.replace(from, to - from, to - from, '\0');
    }
    MemoryStorage storage(MemoryStorage::Files{{segment_name(1), image}});
    const LogScan found = scan(storage, kSilent);
    EXPECT_LE(found.segments.back().frames, 3U);
    EXPECT_GE(found.segments.back().frames, 1U);
  }
}

}  // namespace
}  // namespace lockd
