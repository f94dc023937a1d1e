// How long requests took: a histogram that is exact to about 2 %, whatever the range.
//
// A bucket is a power of two and the five bits behind its first: recording is a few instructions,
// and a million requests take no more memory than one. A plain value, for one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace lockd {

class Latencies {
 public:
  void record(std::chrono::nanoseconds latency) {
    const auto ns = static_cast<std::uint64_t>(latency.count() < 0 ? 0 : latency.count());
    ++counts_[bucket_of(ns)];
    ++total_;
    max_ = std::max(max_, ns);
  }

  std::uint64_t count() const { return total_; }
  std::chrono::nanoseconds max() const {  // exact
    return std::chrono::nanoseconds(static_cast<std::int64_t>(max_));
  }

  // The latency that a part `p` of all requests, from 0 to 1, did not exceed: the bucket's lower
  // bound.
  std::chrono::nanoseconds percentile(double p) const {
    auto left = static_cast<std::uint64_t>(p * static_cast<double>(total_));
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      if (left < counts_[bucket]) return std::chrono::nanoseconds(start_of(bucket));
      left -= counts_[bucket];
    }
    return {};
  }

 private:
  static constexpr unsigned kBits = 5;
  static constexpr std::uint64_t kParts = 1 << kBits;  // of each power of two

  static std::size_t bucket_of(std::uint64_t ns) {
    if (ns < kParts) return ns;
    const auto power = static_cast<unsigned>(std::bit_width(ns)) - 1 - kBits;
    return (power + 1) * kParts + ((ns >> power) - kParts);
  }
  static std::uint64_t start_of(std::size_t bucket) {
    if (bucket < kParts) return bucket;
    return (bucket % kParts + kParts) << (bucket / kParts - 1);
  }

  std::array<std::uint64_t, (64 - kBits + 1) * kParts> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace lockd
