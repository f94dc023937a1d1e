// How many a second, over all who share it. Any thread may call it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace lockd {

class RateLimit {
 public:
  // Fewer than 65,536.
  explicit RateLimit(std::uint32_t per_second) : per_second_(per_second) {}

  // False when there were enough in this second. A caller whose `now` is late counts with the rest.
  bool admit(std::uint64_t now_ns) noexcept {
    std::uint64_t seen = seen_.load(std::memory_order_relaxed);
    std::uint64_t next = 0;
    do {
      const std::uint64_t second = std::max(seen >> kCountBits, now_ns / kNsPerSecond);
      const bool is_new = second > seen >> kCountBits;
      const std::uint64_t count = is_new ? 0 : seen & ((1U << kCountBits) - 1);
      if (count >= per_second_) return false;
      next = second << kCountBits | (count + 1);
    } while (!seen_.compare_exchange_weak(seen, next, std::memory_order_relaxed));
    return true;
  }

 private:
  static constexpr unsigned kCountBits = 16;
  static constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

  const std::uint64_t per_second_;
  std::atomic<std::uint64_t> seen_{0};  // the second, and in the low bits how many were in it
};

}  // namespace lockd
