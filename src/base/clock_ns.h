// The system's clocks, as one number.
#pragma once

#include <ctime>

#include <cstdint>

namespace lockd {

inline std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace lockd
