// BootClock: CLOCK_BOOTTIME as a clock of <chrono>. Thread-safe.
//
// Clients measure leases with it: it is monotonic, ignores changes of the wall clock and, unlike
// std::chrono::steady_clock, includes the time that the machine was suspended.
#pragma once

#include <chrono>

namespace lockd::client {

struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
};

}  // namespace lockd::client
