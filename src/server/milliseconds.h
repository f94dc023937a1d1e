// Lengths of time as people and JSON read them.
#pragma once

#include <chrono>
#include <cstdint>

#include "lockd/types.h"

namespace lockd {

// Rounded down: what remains of a lease is never told as more than it is.
inline std::int64_t whole_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// By the wall clock.
inline std::int64_t unix_ms_now() {
  return whole_ms(std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace lockd
