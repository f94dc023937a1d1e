#include "lockd/histogram.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <thread>

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST(Histogram, HasRoundBounds) {
  EXPECT_EQ(Histogram::bound(0), 1us);
  EXPECT_EQ(Histogram::bound(1), 2'500ns);
  EXPECT_EQ(Histogram::bound(2), 5us);
  EXPECT_EQ(Histogram::bound(3), 10us);
  EXPECT_EQ(Histogram::bound(9), 1ms);
  EXPECT_EQ(Histogram::bound(18), 1s);
  EXPECT_EQ(Histogram::bound(23), 50s);
  EXPECT_EQ(Histogram::bound(24), 100s);
}

std::size_t bucket_by_search(Duration length) {
  std::size_t bucket = 0;
  while (bucket < Histogram::kBoundCount && length > Histogram::bound(bucket)) ++bucket;
  return bucket;
}

TEST(Histogram, BoundBelongsToItsBucket) {
  for (std::size_t i = 0; i < Histogram::kBoundCount; ++i) {
    const Duration bound = Histogram::bound(i);
    EXPECT_EQ(Histogram::bucket_of(bound - 1ns), bucket_by_search(bound - 1ns)) << bound.count();
    EXPECT_EQ(Histogram::bucket_of(bound), i);
    EXPECT_EQ(Histogram::bucket_of(bound + 1ns), i + 1);
  }
}

TEST(Histogram, BucketOfAnyLengthMatchesLinearSearch) {
  for (unsigned bit = 0; bit < 63; ++bit) {
    for (std::int64_t by : {-1, 0, 1}) {
      const Duration length((std::int64_t{1} << bit) + by);
      EXPECT_EQ(Histogram::bucket_of(length), bucket_by_search(length)) << length.count();
    }
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const Duration length(static_cast<std::int64_t>(random() >> (1 + random() % 63)));
    ASSERT_EQ(Histogram::bucket_of(length), bucket_by_search(length)) << length.count();
  }
  EXPECT_EQ(Histogram::bucket_of(kDurationMax), Histogram::kBoundCount);
  EXPECT_EQ(Histogram::bucket_of(-1ns), 0u);
}

TEST(Histogram, CountsSumsAndMerges) {
  Histogram a;
  EXPECT_EQ(a.count(), 0u);
  EXPECT_EQ(a.sum_seconds(), 0.0);
  a.add(500ms);
  a.add(1h);
  a.add(-1s);  // counts as zero
  EXPECT_EQ(a.count(), 3u);
  EXPECT_EQ(a.sum_seconds(), 3600.5);
  EXPECT_EQ(a.buckets()[0], 1u);
  EXPECT_EQ(a.buckets()[Histogram::bucket_of(500ms)], 1u);
  EXPECT_EQ(a.buckets()[Histogram::kBoundCount], 1u);
  Histogram b;
  b.add(500ms);
  b += a;
  EXPECT_EQ(b.count(), 4u);
  EXPECT_EQ(b.sum_seconds(), 3601.0);
  EXPECT_EQ(b.buckets()[Histogram::bucket_of(500ms)], 2u);
}

TEST(Histogram, SumOfManyLongHoldsExceeds64BitNanoseconds) {
  Histogram all;
  for (int i = 0; i < 1'000; ++i) all.add(24h * 365);
  EXPECT_EQ(all.sum_seconds(), 1'000.0 * 365 * 24 * 3600);
}

TEST(Histogram, SharedHistogramIsReadableDuringWrites) {
  SharedHistogram shared;
  std::thread writer([&] {
    for (int i = 0; i < 100'000; ++i) shared.add(1ms);
  });
  std::uint64_t before = 0;
  while (before < 100'000) {
    const std::uint64_t count = shared.read().count();
    EXPECT_GE(count, before);
    before = count;
  }
  writer.join();
  EXPECT_EQ(shared.read().count(), 100'000u);
  EXPECT_EQ(shared.read().sum_seconds(), 100.0);
}

}  // namespace
}  // namespace lockd
