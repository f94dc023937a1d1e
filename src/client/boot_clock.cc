#include "lockd/client/boot_clock.h"

#include <ctime>

namespace lockd::client {

BootClock::time_point BootClock::now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace lockd::client
