#include "load/scale.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "support/server_process.h"

namespace lockd {
namespace {

// What the test and the server need besides: logs, loops, the listening socket.
constexpr rlim_t kOthers = 128;

}  // namespace

std::size_t connections_possible(std::size_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t possible = std::min<rlim_t>(wanted, limit.rlim_max - kOthers);
  if (possible < wanted) {
    std::fprintf(stderr, "%zu connections instead of %zu: a process may have %ju descriptors\n",
                 possible, wanted, static_cast<std::uintmax_t>(limit.rlim_max));
  }
  return possible;
}

void expect_grown_at_most(const ServerProcess& server, std::size_t base_kib, std::size_t kib_max) {
  const std::size_t kib_most = server.memory_max_kib();
  const std::size_t grown_kib = kib_most - std::min(kib_most, base_kib);
  std::printf("grown by at most %zu KiB\n", grown_kib);
  if (is_full_size()) {
    EXPECT_LE(grown_kib, kib_max);
  }
}

}  // namespace lockd
