#include <ctime>

#include "lockd/clock.h"

namespace lockd {
namespace {

std::uint64_t read_ns(clockid_t clock) noexcept {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

SystemClock::SystemClock() : SystemClock(Time{read_ns(CLOCK_REALTIME)}) {}

// The subtraction may wrap below zero; the addition in now() wraps it back.
SystemClock::SystemClock(Time start) : offset_ns_(start.ns - read_ns(CLOCK_BOOTTIME)) {}

Time SystemClock::now() const noexcept { return {offset_ns_ + read_ns(CLOCK_BOOTTIME)}; }

}  // namespace lockd
