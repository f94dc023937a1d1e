// What a cluster cannot be faster than: the transaction that an append to the chain is, asked of
// etcd by a client that does nothing else. Two keys are compared and two are put, a batch and the
// head, at the member that leads, one after the other.
#pragma once

#include <string>
#include <vector>

#include "line_load.h"

namespace lockd::bench {

// `endpoints` are host:port of each member. A batch is as large as that of so many requests is, and
// counts as so many. Throws std::runtime_error at the first answer that is not as it must be.
LoadResult run_etcd_txns(const std::vector<std::string>& endpoints, int requests_each,
                         LoadTimes times);

}  // namespace lockd::bench
