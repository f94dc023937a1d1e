// How large the load tests are: the sizes in them are those of the release, in full.
//
// Under a sanitizer, where both sides are several times slower, and when tests are to be short,
// counts and durations are divided. Memory is looked at in full size alone: a sanitizer keeps what
// was freed, on purpose, and of a few much is noise.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/testing/test_size.h"

namespace lockd {

class ServerProcess;

inline std::size_t divisor() { return test_divisor(4, 4); }

inline std::size_t scaled(std::size_t count) { return count / divisor(); }
inline std::chrono::milliseconds scaled(std::chrono::milliseconds time) {
  return time / static_cast<int>(divisor());
}
inline bool is_full_size() { return divisor() == 1; }

// Raises this process' limit on descriptors as far as it may, and says how many connections of
// those wanted it can hold; when they are fewer, a line on stderr says so.
std::size_t connections_possible(std::size_t wanted);

// In full size, fails the test when the server has ever taken more than `kib_max` beyond
// `base_kib`.
void expect_grown_at_most(const ServerProcess& server, std::size_t base_kib, std::size_t kib_max);

}  // namespace lockd
