#include "server/descriptor_limit.h"

#include <sys/resource.h>

namespace lockd {

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // where it is refused, what there is will do
}

}  // namespace lockd
