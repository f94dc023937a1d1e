// The clock that a client is certain by: CLOCK_BOOTTIME.
//
// It never goes back, no change of the wall clock moves it, and it counts the time that the machine
// was suspended, which std::chrono::steady_clock does not: a lease goes on running meanwhile. A
// clock of <chrono>, for any thread.
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
