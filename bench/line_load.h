// The load generator: a closed loop of connections, each with a fixed number of requests under way.
//
// One thread and one epoll. A connection carries as many dialogues as its pipeline is deep, each on
// a key of its own, in turn: a reply is followed at once by its dialogue's next request, and what
// one read brings is answered by one write. So a server that stalls is asked for less; latencies
// are those of a client that waits, not of arrivals that keep coming.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/latencies.h"
#include "dialogue.h"

namespace lockd::bench {

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
