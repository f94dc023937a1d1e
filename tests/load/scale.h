// How large the load tests are: the sizes in them are those of the release build.
//
// Under a sanitizer both sides are several times slower, so counts and durations are divided by
// kDivisor, and memory is not looked at: a sanitizer keeps what was freed, on purpose.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/testing/test_size.h"

namespace lockd {

inline constexpr std::size_t kDivisor = kSanitized ? 4 : 1;

constexpr std::size_t scaled(std::size_t count) { return count / kDivisor; }
constexpr std::chrono::milliseconds scaled(std::chrono::milliseconds time) {
  return time / kDivisor;
}

// Raises this process' limit on descriptors as far as it may, and says how many connections of
// those wanted it can hold; when they are fewer, a line on stderr says so.
std::size_t connections_possible(std::size_t wanted);

}  // namespace lockd
