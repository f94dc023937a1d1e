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

SystemClock::SystemClock() : SystemClock(read_ns(CLOCK_REALTIME) - read_ns(CLOCK_BOOTTIME)) {}

// The addition wraps back what the subtraction may have wrapped.
Time SystemClock::now() const noexcept { return {offset_ns_ + read_ns(CLOCK_BOOTTIME)}; }

}  // namespace lockd
