#include "journal/format.h"

#include <gtest/gtest.h>

#include <string>

#include "base/coding.h"

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

}  // namespace
}  // namespace lockd
