// The interface through which the engine gets its time.
//
// Engine time starts from the wall clock and is carried forward by CLOCK_BOOTTIME: it never goes
// back, it counts the time that the machine was suspended, and no change of the wall clock moves
// it. A simulator or a test passes a ManualClock and moves it by hand.
#pragma once

#include <atomic>
#include <cstdint>

#include "lockd/types.h"

namespace lockd {

class Clock {
 public:
  virtual ~Clock() = default;

  // Any thread may ask. Never less than what was returned before.
  virtual Time now() const noexcept = 0;
};

class SystemClock final : public Clock {
 public:
  SystemClock();  // starts from the wall clock
  // Goes on from an earlier run's: engine time less CLOCK_BOOTTIME, which may wrap below zero.
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
