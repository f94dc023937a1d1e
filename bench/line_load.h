// A load on a server of this machine, and what the server used meanwhile.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/latencies.h"
#include "loadgen/dialogue.h"

namespace lockd::bench {

using loadgen::Dialogue;
using loadgen::line_request;
using loadgen::Protocol;

struct LoadShape {
  int connections = 1;
  int pipeline = 1;
  bool one_key = false;  // all queue for it; else each dialogue has its own
};

struct LoadTimes {
  std::chrono::nanoseconds warm_up;
  std::chrono::nanoseconds measured;
};

// What was seen in the measured time.
struct LoadResult {
  std::uint64_t requests = 0;
  std::chrono::nanoseconds elapsed{};
  std::chrono::nanoseconds server_cpu{};
  Latencies latencies;
};

// Talks to 127.0.0.1:`port`. `server_cpu` says how much CPU time the server has used so far. Throws
// std::runtime_error at the first reply that is not as it must be.
LoadResult run_load(Protocol protocol, std::uint16_t port, LoadShape shape, LoadTimes times,
                    const std::function<std::chrono::nanoseconds()>& server_cpu);

}  // namespace lockd::bench
