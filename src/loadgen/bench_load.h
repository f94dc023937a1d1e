// The load of `bench`: workers that acquire and release, and how long it takes them.
//
// A closed loop: a worker has as many rounds under way as its pipeline is deep, and begins the next
// when one has ended. So a server that stalls is asked for less, and the times are those of clients
// that wait. One thread. Before the rounds that count every worker warms up, and all begin
// together.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/latencies.h"
#include "lockctl/settings.h"

namespace lockd::cli {

struct LoadPlan {
  bool http = false;
  std::uint64_t workers = 10;
  std::uint64_t rounds = 50;
  std::uint64_t warmup = 10;
  std::string key = "bench";
  bool shared_key = false;
  std::uint64_t timeout_s = 30;
  std::uint64_t lease_s = 10;
  std::uint64_t connections = 1;  // of each worker
  std::uint64_t pipeline = 1;
};

struct LoadFigures {
  std::uint64_t rounds = 0;
  std::chrono::nanoseconds elapsed{};
  Latencies acquire;
  Latencies release;
  Latencies round;  // both together
};

// Called a few times a second, with the rounds that are done.
using OnProgress = std::function<void(std::uint64_t rounds)>;

// Throws Failure at the first reply that is not as it must be.
LoadFigures run_load(const LoadPlan& plan, const Settings& settings, const OnProgress& on_progress);

}  // namespace lockd::cli
