// How long a lock is nobody's when it passes on: from the moment its holder sends the release until
// the next in the queue has read its grant, with queues of different lengths behind.
//
// Run by `make bench`; see docs/performance.md. Everybody who waits has a connection. Who has
// had the lock joins the queue again, so it stays as long as it is. Between two hand-offs one
// ping is timed, on a connection of its own: what a round trip costs here when nothing is decided.
//
//   handoff_bench [SECONDS], for each length
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/latencies.h"
#include "client_socket.h"
#include "line_load.h"
#include "measured_servers.h"
#include "record.h"

namespace lockd::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;

// A client that takes the lock, releases it and joins the queue again.
class Client {
 public:
  explicit Client(std::uint16_t port)
      : socket_(port), dialogue_(Protocol::line, "key", {.wait_s = 600}) {
    // A grant that goes to somebody else must not be waited for in vain.
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket_.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  void ask() { socket_.send(dialogue_.request()); }
  void take_reply() {
    std::array<char, 256> buffer;
    if (!dialogue_.take(socket_.receive(buffer))) throw std::runtime_error("a refusal");
  }

 private:
  ClientSocket socket_;
  Dialogue dialogue_;
};

class Queue {
 public:
  // One client holds the lock, and `waiting` others have joined the queue.
  Queue(std::uint16_t port, std::size_t waiting) : onlooker_(port) {
    for (std::size_t i = 0; i <= waiting; ++i) {
      clients_.emplace_back(port);
      clients_.back().ask();
      ping();  // one after the other, so that they stand in this order
    }
    clients_.front().take_reply();
  }

  // The holder gives the lock to the next, and goes to the end of the queue.
  Clock::duration pass_on() {
    Client& holder = clients_[holder_];
    holder_ = (holder_ + 1) % clients_.size();
    const Clock::time_point start = Clock::now();
    holder.ask();
    clients_[holder_].take_reply();
    const Clock::duration elapsed = Clock::now() - start;
    holder.take_reply();
    holder.ask();
    ping();
    return elapsed;
  }

  Clock::duration ping() {
    const Clock::time_point start = Clock::now();
    onlooker_.ask(ping_);
    return Clock::now() - start;
  }

 private:
  const std::string ping_ = line_request("ping", "", "");
  ClientSocket onlooker_;
  std::vector<Client> clients_;  // in the order in which they stand, from the holder on
  std::size_t holder_ = 0;
};

double micros(const Latencies& latencies, double p) {
  return Micros(latencies.percentile(p)).count();
}

void measure(std::size_t waiting, double seconds) {
  const ChildServer server(lockd_command());
  Queue queue(server.port(), waiting);
  for (int i = 0; i < 100; ++i) queue.pass_on();
  Latencies handoffs, pings;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    handoffs.record(queue.pass_on());
    pings.record(queue.ping());
  }
  std::printf("  %7zu %9.1f %9.1f %9.1f %9.1f %9.1f\n", waiting, micros(handoffs, 0.5),
              micros(handoffs, 0.99), micros(handoffs, 0.999), micros(pings, 0.5),
              micros(pings, 0.99));
  std::fflush(stdout);
  record("handoff", {{"waiting", waiting},
                     {"handoffs", handoffs.count()},
                     {"p50_us", micros(handoffs, 0.5)},
                     {"p99_us", micros(handoffs, 0.99)},
                     {"p999_us", micros(handoffs, 0.999)},
                     {"ping_p50_us", micros(pings, 0.5)},
                     {"ping_p99_us", micros(pings, 0.99)}});
}

void run(double seconds) {
  std::printf("From a release to the grant of the next in the queue, for %.1f s each; %s.\n\n",
              seconds, pin_load().c_str());
  std::printf("  %7s %9s %9s %9s %9s %9s\n", "waiting", "p50 us", "p99 us", "p99.9 us", "ping p50",
              "ping p99");
  const std::size_t files = raise_file_limit();
  for (const std::size_t waiting : {1u, 10u, 100u, 1'000u, 10'000u}) {
    if (waiting + 200 > files) {
      std::printf("  only %zu files may be open here: no queue of %zu\n", files, waiting);
      continue;
    }
    measure(waiting, seconds);
  }
}

}  // namespace
}  // namespace lockd::bench

int main(int argc, char** argv) {
  try {
    lockd::bench::run(argc > 1 ? std::atof(argv[1]) : 2);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "handoff_bench: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
