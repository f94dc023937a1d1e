// Deadlines that cannot overflow: leases and waits may last for 292 years.
#pragma once

#include "lockd/client/boot_clock.h"
#include "lockd/types.h"

namespace lockd::client {

inline constexpr BootClock::time_point kNever = BootClock::time_point::max();

// Precondition: `length` is not negative.
constexpr BootClock::time_point later(BootClock::time_point from, Duration length) {
  return length > kNever - from ? kNever : from + length;
}

}  // namespace lockd::client
