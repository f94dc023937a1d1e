// The interface through which the engine gets its time.
//
// Engine time starts from the wall clock and advances with CLOCK_BOOTTIME: it never goes back,
// includes the time that the machine was suspended, and ignores changes of the wall clock. Tests
// and simulations pass a ManualClock and advance it themselves.
#pragma once

#include <atomic>
#include <cstdint>

#include "lockd/types.h"

namespace lockd {

class Clock {
 public:
  virtual ~Clock() = default;

  // Thread-safe. Never less than an earlier result.
  virtual Time now() const noexcept = 0;
};

class SystemClock final : public Clock {
 public:
  SystemClock();  // starts from the wall clock
  // Continues an earlier clock: `offset_ns` is engine time minus CLOCK_BOOTTIME, modulo 2^64.
  explicit SystemClock(std::uint64_t offset_ns) : offset_ns_(offset_ns) {}

  Time now() const noexcept override;

 private:
  const std::uint64_t offset_ns_;
};

class ManualClock final : public Clock {
 public:
  explicit ManualClock(Time start = Time{1'000'000'000}) : now_ns_(start.ns) {}

  Time now() const noexcept override { return {now_ns_.load(std::memory_order_acquire)}; }
  void advance(Duration by) noexcept {
    now_ns_.fetch_add(static_cast<std::uint64_t>(by.count()), std::memory_order_acq_rel);
  }

 private:
  std::atomic<std::uint64_t> now_ns_;
};

}  // namespace lockd
