#include "load/scale.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

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

}  // namespace lockd
