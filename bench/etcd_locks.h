// Load on etcd's own locks, in the shape of that on ours: a closed loop of connections, each with a
// lock of its own, which it takes and gives back.
//
// A lock at etcd is a key with a lease. Each connection has a lease, made once: taking a lock costs
// etcd one transaction, giving it back another.
#pragma once

#include <string>
#include <vector>

#include "line_load.h"

namespace lockd::bench {

// Connections are spread over the endpoints, host:port of each member. Throws std::runtime_error
// at the first answer that is not as it must be.
LoadResult run_etcd_locks(const std::vector<std::string>& endpoints, int connections,
                          LoadTimes times);

}  // namespace lockd::bench
