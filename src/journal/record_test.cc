#include "journal/record.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "journal/testing/journal_fixture.h"

namespace lockd {
namespace {

std::vector<Event> samples() {
  static const std::string longest(kKeySizeMax, 'x');
  Event semaphore = granted("s", kFenceMax, longest);
  semaphore.kind = Kind::semaphore;
  semaphore.limit = kLimitMax;
  semaphore.ttl = kDurationMax;
  semaphore.expires_at = {UINT64_MAX};
  return {granted("stone-42", 1),
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
  EXPECT_EQ(a.ttl, b.ttl);
  EXPECT_EQ(a.expires_at, b.expires_at);
  if (a.type == Event::Type::renewed) return;
  EXPECT_EQ(a.limit, b.limit);
  EXPECT_EQ(a.holder, b.holder);
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
      with(0, 6),       // one that is not known
      with(1, 2),       // no kind
      with(2, 0),       // no key
      with(2, '\x7f'),  // a key longer than what follows
      record_of(fence_floor(kFenceMax + 1)),
      record_of(short_lease),
      record_of(no_lease),
      record_of(negative),
      record_of(no_limit),
      record_of(huge_limit),
      "\x04\x00\x01k\x05\x03"s,  // no cause
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

}  // namespace
}  // namespace lockd
