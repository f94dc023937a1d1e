// A number that one thread counts and any reads: an increment is a plain add.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockd {

class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.store(value() + n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace lockd
