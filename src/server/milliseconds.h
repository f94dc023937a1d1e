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

}  // namespace lockd
