#include "journal/format.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/coding.h"
#include "journal/testing/journal_fixture.h"

namespace lockd {
namespace {

SegmentHeader sample() {
  return {.journal = {1, 2, 3},
          .number = 42,
          .start = 1'000'000,
          .opened = {.boot_id = {9, 8}, .boot_ns = 5, .wall_ns = 6},
          .engine_time = {7}};
}

TEST(Format, NamesOfSegments) {
  EXPECT_EQ(segment_name(42), "journal-000000000000002a.log");
  EXPECT_EQ(segment_number("journal-000000000000002a.log"), 42U);
  EXPECT_EQ(segment_number(segment_name(UINT64_MAX)), UINT64_MAX);
  for (const char* other :
       {"lock", ".", "journal-2a.log", "journal-000000000000002A.log", "journal-000000000000002a",
        "journal-000000000000002a.log.bak", "journal-00000000000000 a.log", ""}) {
    EXPECT_FALSE(segment_number(other)) << other;
  }
}

TEST(Format, ASegmentsHeaderComesBack) {
  const std::string bytes = encode(sample());
  ASSERT_EQ(bytes.size(), kSegmentHeaderSize);
  SegmentHeader back;
  std::uint32_t version = 0;
  ASSERT_EQ(decode(bytes, &back, &version), HeaderFault::none);
  EXPECT_EQ(encode(back), bytes);
  EXPECT_EQ(back.number, 42U);
  EXPECT_EQ(back.start, 1'000'000U);
  EXPECT_EQ(back.engine_time.ns, 7U);
}

TEST(Format, AHeaderWithAnyBitFlippedOrCutShortIsNone) {
  const std::string good = encode(sample());
  SegmentHeader header;
  std::uint32_t version = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bytes = good;
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_NE(decode(bytes, &header, &version), HeaderFault::none) << bit;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(decode(good.substr(0, size), &header, &version), HeaderFault::torn) << size;
  }
}

TEST(Format, AnotherVersionIsToldApartFromATornHeader) {
  std::string bytes = encode(sample());
  store(bytes.data() + 8, kFormatVersion + 1);
  SegmentHeader header;
  std::uint32_t version = 0;
  EXPECT_EQ(decode(bytes, &header, &version), HeaderFault::version);
  EXPECT_EQ(version, kFormatVersion + 1);
}

TEST(Format, AFramesHeaderComesBackAndNoBitOfItMayFlip) {
  const FrameHeader frame{.completes = true,
                          .payload_size = 77,
                          .payload_crc = 88,
                          .position = 1000,
                          .synced = 900,
                          .engine_time = {11},
                          .wall_ns = 12};
  char good[kFrameHeaderSize];
  encode(frame, good);
  FrameHeader back;
  ASSERT_TRUE(decode({good, sizeof good}, &back));
  char again[kFrameHeaderSize];
  encode(back, again);
  EXPECT_EQ(std::string(again, sizeof again), std::string(good, sizeof good));
  EXPECT_TRUE(back.completes);
  EXPECT_FALSE(back.seals);
  EXPECT_EQ(back.end(), 1077U);
  for (std::size_t bit = 0; bit < 8 * sizeof good; ++bit) {
    std::string bytes(good, sizeof good);
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_FALSE(decode(bytes, &back)) << bit;
  }
  EXPECT_FALSE(decode({good, sizeof good - 1}, &back));
}

TEST(Format, AFrameBeyondTheLimitIsNone) {
  char bytes[kFrameHeaderSize];
  FrameHeader back;
  encode({.payload_size = kPayloadMax}, bytes);
  EXPECT_TRUE(decode({bytes, sizeof bytes}, &back));
  encode({.payload_size = kPayloadMax + 1}, bytes);
  EXPECT_FALSE(decode({bytes, sizeof bytes}, &back));
}

std::vector<Event> samples() {
  static const std::string longest(kKeySizeMax, 'x');
  Event semaphore = granted("s", kFenceMax, longest);
  semaphore.kind = Kind::semaphore;
  semaphore.limit = kLimitMax;
  semaphore.ttl = kDurationMax;
  semaphore.expires_at = {UINT64_MAX};
  Event told = granted("stone-42", 4);
  told.client = {"", "10.0.0.9:51234", "deploy"};
  Event session = granted("stone-42", 5, Holder::of_secret(0x0123456789abcdef));
  session.client = {"ann@build-7:4711", "10.0.0.7:51234", ""};
  Event resized = semaphore;
  resized.first_limit = 3;
  static const std::string peer(kPeerSizeMax, 'p');
  Event shared = granted("page", 6);
  shared.mode = Mode::shared;
  Event permits = semaphore;
  permits.permits = 4;
  Event everything = resized;
  everything.key = longest;
  everything.permits = kLimitMax;
  everything.client = {longest, peer, longest};
  return {told,
          session,
          resized,
          shared,
          permits,
          everything,
          {.type = Event::Type::resized, .kind = Kind::semaphore, .limit = 7, .key = "s"},
          ended("k", 303, EndCause::revoked),
          granted("stone-42", 1),
          granted("stone-42", 2, Holder::of_secret(0x0123456789abcdef)),
          granted(longest, 3, longest),
          semaphore,
          renewed("k", 300),
          ended("k", 300, EndCause::released),
          ended("k", 301, EndCause::expired),
          ended("k", 302, EndCause::disconnected),
          fence_floor(0),
          fence_floor(kFenceMax)};
}

void expect_same(const Event& a, const Event& b) {
  EXPECT_EQ(a.type, b.type);
  EXPECT_EQ(a.fence, b.fence);
  if (a.type == Event::Type::fence_floor) return;
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.key, b.key);
  if (a.type == Event::Type::ended) {
    EXPECT_EQ(a.cause, b.cause);
    return;
  }
  if (a.type == Event::Type::resized) {
    EXPECT_EQ(a.limit, b.limit);
    return;
  }
  EXPECT_EQ(a.ttl, b.ttl);
  EXPECT_EQ(a.expires_at, b.expires_at);
  if (a.type == Event::Type::renewed) return;
  EXPECT_EQ(a.limit, b.limit);
  EXPECT_EQ(a.holder, b.holder);
  EXPECT_EQ(a.client, b.client);
  EXPECT_EQ(a.first_limit, b.first_limit);
  EXPECT_EQ(a.mode, b.mode);
  EXPECT_EQ(a.permits, b.permits);
}

TEST(Record, EventsComeBack) {
  for (const Event& event : samples()) {
    const Record record = record_of(event);
    EXPECT_LE(record.size(), kRecordSizeMax);
    const std::string bytes = record + "rest";
    std::string_view left = bytes;
    Event back{.type = Event::Type::ended};
    ASSERT_TRUE(take_event(left, &back));
    EXPECT_EQ(left, "rest");
    expect_same(event, back);
  }
}

TEST(Record, EveryTruncationIsRefused) {
  for (const Event& event : samples()) {
    const Record record = record_of(event);
    for (std::size_t size = 0; size < record.size(); ++size) {
      std::string_view left = std::string_view(record).substr(0, size);
      Event back{.type = Event::Type::ended};
      EXPECT_FALSE(take_event(left, &back)) << size;
      EXPECT_EQ(left.size(), size);
    }
  }
}

// A grant with more to tell: its flags, then the holder and the rest.
Record besides(char flags, const std::string& rest) {
  Record record = record_of(granted("k", 5, "h"));
  record[0] = 6;
  record.resize(record.size() - 2);  // the holder
  return record + flags + rest;
}

Record share_of_semaphore(char flags, const std::string& rest) {
  Record record = besides(flags,
                          "\x06"
                          "cart-7" +
                              rest);
  record[1] = 1;
  return record;
}

TEST(Record, AGrantWithMoreToTellIsATagOfItsOwn) {
  Event event = granted("k", 5);
  event.client = {"", "p", "n"};
  EXPECT_EQ(record_of(event), besides(2, std::string("\x06"
                                                     "cart-7"
                                                     "\x00"
                                                     "\x01p"
                                                     "\x01n",
                                                     12)));
  event.client = {};
  EXPECT_EQ(record_of(event)[0], 1) << "as ever";
}

TEST(Record, RefusesWhatIsBeyondItsLimits) {
  using namespace std::string_literals;
  const Record good = record_of(granted("k", 5));
  const auto with = [&](std::size_t at, char byte) {
    Record changed = good;
    changed[at] = byte;
    return changed;
  };
  Event short_lease = granted("k", 5);
  short_lease.expires_at = {1};  // before the lease can have begun
  Event no_lease = granted("k", 5);
  no_lease.ttl = Duration::zero();
  Event negative = granted("k", 5);
  negative.ttl = Duration(-1);
  Event no_limit = granted("k", 5);
  no_limit.limit = 0;
  Event huge_limit = granted("k", 5);
  huge_limit.limit = kLimitMax + 1;
  const Record refused[] = {
      with(0, 0),       // no type
      with(0, 8),       // one that is not known
      with(1, 2),       // no kind
      with(2, 0),       // no key
      with(2, '\x7f'),  // a key longer than what follows
      record_of(fence_floor(kFenceMax + 1)),
      record_of(short_lease),
      record_of(no_lease),
      record_of(negative),
      record_of(no_limit),
      record_of(huge_limit),
      "\x04\x00\x01k\x05\x04"s,  // no cause
      "\x07\x01\x01k\x00"s,      // no limit
      besides(0,
              "\x06"
              "cart-7"),  // nothing besides: that is another tag's
      besides(16,
              "\x06"
              "cart-7\x02"),  // permits of a lock
      besides(24,
              "\x06"
              "cart-7\x02"),  // which is shared
      besides(32,
              "\x06"
              "cart-7"),               // a flag that is not known
      share_of_semaphore(8, ""),       // a semaphore that is shared
      share_of_semaphore(16, "\x01"),  // one permit: that is another tag's
      share_of_semaphore(16, ""),      // none
      besides(2,
              "\x06"
              "cart-7\x00\x00\x00"s),  // a client that says nothing
      besides(2,
              "\x06"
              "cart-7\x00\x41" +
                  std::string(65, 'p') + '\0'),  // too long a peer
      besides(4,
              "\x06"
              "cart-7\x00"s),  // no first limit
      "\x04\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s + std::string(600, 'k'),
  };
  for (const Record& record : refused) {
    std::string_view left = record;
    Event back{.type = Event::Type::ended};
    EXPECT_FALSE(take_event(left, &back)) << testing::PrintToString(record);
  }
}

// Whatever the bytes are, what is taken is within its limits and says the same again.
TEST(Record, RandomBytesAreRefusedOrMakeSense) {
  std::mt19937_64 random(7);
  std::vector<Record> records;
  for (const Event& event : samples()) records.push_back(record_of(event));
  int taken = 0;
  for (int i = 0; i < 200'000; ++i) {
    Record bytes = records[random() % records.size()];
    for (int flips = 0; flips < 3; ++flips) {
      bytes[random() % std::min<std::size_t>(bytes.size(), 24)] ^=
          static_cast<char>(1 << random() % 8);
    }
    std::string_view left = bytes;
    Event event{.type = Event::Type::ended};
    if (!take_event(left, &event)) continue;
    ++taken;
    EXPECT_LE(event.key.size(), kKeySizeMax);
    EXPECT_LE(event.fence, kFenceMax);
    EXPECT_EQ(record_of(event), bytes.substr(0, bytes.size() - left.size()));
  }
  EXPECT_GT(taken, 0);
}

// The hex dump in docs/journal_format.md is what the journal writes.

// As `hexdump -C` shows it.
std::string hex_dump(std::string_view bytes) {
  std::string text;
  char piece[32];
  for (std::size_t line = 0; line < bytes.size(); line += 16) {
    std::snprintf(piece, sizeof piece, "%08zx ", line);
    text += piece;
    std::string letters;
    for (std::size_t i = 0; i < 16; ++i) {
      if (i == 8) text += ' ';
      if (line + i >= bytes.size()) {
        text += "   ";
        continue;
      }
      const auto byte = static_cast<unsigned char>(bytes[line + i]);
      std::snprintf(piece, sizeof piece, " %02x", static_cast<unsigned>(byte));
      text += piece;
      letters += byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '.';
    }
    text += "  |" + letters + "|\n";
  }
  return text;
}

// The segment that the page explains: a grant to a name; then its renewal, its release and a grant
// to a session, written together.
std::string worked_example() {
  MemoryStorage storage;
  storage.now = {.boot_id = {0xb0, 0x07}, .boot_ns = 60'000'000'000, .wall_ns = 0};
  storage.now.wall_ns = 1'700'000'000'000'000'000;
  LogJournalOptions options;
  options.id = JournalId{0x1d};
  LogJournal journal(storage, options);
  recover_all(journal);
  journal.append(std::vector{granted("stone-42", 1)});
  journal.turn();
  storage.advance(1'000'000'000);
  Event grant = granted("stone-42", 2, Holder::of_secret(0x0123456789abcdef));
  journal.append(std::vector{renewed("stone-42", 1)});
  journal.append(std::vector{ended("stone-42", 1), grant});
  journal.turn();
  const std::string bytes = storage.bytes(segment_name(1));
  return bytes.substr(0, bytes.find_last_not_of('\0') + 1);
}

TEST(FormatPage, ItsDumpIsWhatIsWritten) {
  std::ifstream file(LOCKD_SOURCE_DIR "/docs/journal_format.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string dump = hex_dump(worked_example());
  EXPECT_NE(page.find("```\n" + dump + "```\n"), std::string::npos)
      << "docs/journal_format.md should have:\n"
      << dump;
}

}  // namespace
}  // namespace lockd
