// The load generator: clients that acquire and release, and how long it takes them.
//
// A closed loop: a worker has as many rounds under way as its pipeline is deep, and begins the next
// when one has ended. So a server that stalls is asked for less, and the times are those of clients
// that wait, not of arrivals that keep coming. What one read brings is answered by one write. One
// thread, and one epoll.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/latencies.h"
#include "loadgen/dialogue.h"
#include "lockd/client/address.h"
#include "lockd/client/connection.h"

namespace lockd::loadgen {

struct LoadPlan {
  Protocol protocol = Protocol::line;
  std::uint64_t workers = 10;
  std::uint64_t connections = 1;  // of each worker, used in turn
  std::uint64_t pipeline = 1;     // of each worker
  std::string key = "bench";
  bool one_key = false;  // all wait in its queue; else each round under way has its own
  std::uint64_t wait_s = 30;
  std::uint64_t lease_s = 10;
};

struct LoadServer {
  client::Address address;
  client::ConnectOptions options{};
};

struct LoadStats {
  std::uint64_t rounds = 0;
  std::chrono::nanoseconds elapsed{};
  Latencies request;  // either of the next two
  Latencies acquire;
  Latencies release;
  Latencies round;  // both together
};

// Called a few times a second and in the end, with the rounds that are done.
using OnProgress = std::function<void(std::uint64_t rounds)>;

class Load {
 public:
  // Connects everybody; `servers` share the keys. This, and what follows, throws LoadError at the
  // first thing that is not as it must be.
  Load(const LoadPlan& plan, const std::vector<LoadServer>& servers);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // All workers do so many rounds each.
  LoadStats run_rounds(std::uint64_t rounds, const OnProgress& on_progress = {});
  // Rounds go on until then; what is under way counts for whoever calls next.
  LoadStats run_for(std::chrono::nanoseconds time);

 private:
  class Impl;

  std::unique_ptr<Impl> impl_;
};

}  // namespace lockd::loadgen
