// Histogram of durations. The bounds are fixed, so that any two can be added: 1, 2.5 and 5 times
// each power of ten from a microsecond to 100 seconds. add() costs a few instructions.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "lockd/types.h"

namespace lockd {

// A plain value. Used by one thread at a time: see SharedHistogram.
class Histogram {
 public:
  static constexpr std::size_t kBoundCount = 25;
  static constexpr std::size_t kBucketCount = kBoundCount + 1;
  using Buckets = std::array<std::uint64_t, kBucketCount>;

  // Bucket i counts durations in (bound(i - 1), bound(i)]. The last bucket has no upper bound.
  static constexpr Duration bound(std::size_t bucket) {
    return Duration(static_cast<std::int64_t>(kBounds[bucket]));
  }
  static constexpr std::size_t bucket_of(Duration length) noexcept {
    const auto ns = static_cast<std::uint64_t>(count_of(length));
    // Each bound is at least twice the previous one, so a bit width contains at most one bound and
    // one comparison is enough.
    const std::size_t first = kFirstByWidth[static_cast<std::size_t>(std::bit_width(ns))];
    return first + (ns > kBounds[first] ? 1 : 0);
  }

  // A negative duration counts as zero.
  void add(Duration length) noexcept {
    ++buckets_[bucket_of(length)];
    sum_ns_ += static_cast<double>(count_of(length));
  }
  Histogram& operator+=(const Histogram& other) noexcept {
    for (std::size_t i = 0; i < kBucketCount; ++i) buckets_[i] += other.buckets_[i];
    sum_ns_ += other.sum_ns_;
    return *this;
  }

  const Buckets& buckets() const noexcept { return buckets_; }
  std::uint64_t count() const noexcept {
    return std::accumulate(buckets_.begin(), buckets_.end(), std::uint64_t{0});
  }
  // A double, exact up to 104 days: a million permanently held locks would overflow 64 bits of
  // nanoseconds in five hours.
  double sum_seconds() const noexcept { return sum_ns_ / 1e9; }

 private:
  friend class SharedHistogram;

  static constexpr std::int64_t count_of(Duration length) noexcept {
    return std::max<std::int64_t>(length.count(), 0);
  }
  static constexpr std::array<std::uint64_t, kBucketCount> kBounds = [] {
    std::array<std::uint64_t, kBucketCount> all{};
    std::uint64_t power = 1'000;
    for (std::size_t i = 0; i + 1 < kBoundCount; i += 3, power *= 10) {
      all[i] = power;
      all[i + 1] = power * 5 / 2;
      all[i + 2] = power * 5;
    }
    all[kBoundCount - 1] = power;
    all[kBoundCount] = UINT64_MAX;
    return all;
  }();

  // The first bucket for durations of each bit width.
  static constexpr std::array<std::uint8_t, 65> kFirstByWidth = [] {
    std::array<std::uint8_t, 65> all{};
    for (std::size_t width = 1; width <= 64; ++width) {
      const std::uint64_t least = std::uint64_t{1} << (width - 1);
      while (kBounds[all[width]] < least) ++all[width];
    }
    return all;
  }();

  double sum_ns_ = 0;  // shares a cache line with the most used buckets
  Buckets buckets_{};
};

// A histogram with one writing thread and any number of readers. A copy may lack a duration that is
// being added, in the counts, the sum, or both.
class SharedHistogram {
 public:
  void add(Duration length) noexcept {
    // With one writer, load and store need no atomic addition.
    std::atomic<std::uint64_t>& bucket = buckets_[Histogram::bucket_of(length)];
    bucket.store(bucket.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    sum_ns_.store(
        sum_ns_.load(std::memory_order_relaxed) + static_cast<double>(Histogram::count_of(length)),
        std::memory_order_relaxed);
  }

  Histogram read() const noexcept {
    Histogram copy;
    for (std::size_t i = 0; i < Histogram::kBucketCount; ++i) {
      copy.buckets_[i] = buckets_[i].load(std::memory_order_relaxed);
    }
    copy.sum_ns_ = sum_ns_.load(std::memory_order_relaxed);
    return copy;
  }

 private:
  std::array<std::atomic<std::uint64_t>, Histogram::kBucketCount> buckets_{};
  std::atomic<double> sum_ns_{0};
};

}  // namespace lockd
