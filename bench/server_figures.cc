// Stats of the server that are not speed: memory per connection, and how late leases end as a
// client sees it.
//
// Run by `make bench`; what the stats mean is in docs/performance.md.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "client_socket.h"
#include "line_load.h"
#include "measured_servers.h"
#include "record.h"

namespace lockd::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Millis = std::chrono::duration<double, std::milli>;

// Memory.

// Sends `requests` at once over each connection, and waits for as many replies.
void converse(std::vector<ClientSocket>& sockets, const std::string& requests, int replies) {
  for (ClientSocket& socket : sockets) {
    std::array<char, 4096> buffer;
    socket.send(requests);
    for (std::ptrdiff_t lines = 0; lines < replies;) {
      const std::string_view bytes = socket.receive(buffer);
      lines += std::count(bytes.begin(), bytes.end(), '\n');
    }
  }
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// The server's private memory per connection: when it has only been opened, when it has been used,
// and when it has been used with 16 requests at once.
void connection_memory(const ServerCommand& command, const std::string& ping, std::size_t count) {
  const ChildServer server(command);
  const std::size_t before = server.private_memory();
  const auto each = [&] {
    const std::size_t now = server.private_memory();
    return (static_cast<double>(now) - static_cast<double>(before)) / static_cast<double>(count);
  };
  std::vector<ClientSocket> sockets;
  while (sockets.size() < count) sockets.emplace_back(server.port());
  ClientSocket(server.port()).ask(ping);  // accepted in turn: so all before it have been
  const double opened = each();
  converse(sockets, ping, 1);
  const double used = each();
  converse(sockets, repeated(ping, 16), 16);
  const double pipelined = each();
  record("connection_memory", {{"server", command.name},
                               {"connections", count},
                               {"opened_bytes", opened},
                               {"used_bytes", used},
                               {"pipelined_bytes", pipelined}});
  std::printf(
      "memory of an idle connection, %zu of them, %s: %.0f bytes; %.0f after a request, %.0f after "
      "16 at once\n",
      count, command.name.c_str(), opened, used, pipelined);
}

void connection_memory() {
  const std::size_t files = raise_file_limit();
  const std::size_t count =
      std::min<std::size_t>(10'000, files - std::min<std::size_t>(files, 200));
  if (count < 10'000) std::printf("only %zu files may be open here\n", files);
  connection_memory(lockd_command(), line_request("ping", "", ""), count);
  if (const auto redis = redis_command()) {
    connection_memory(*redis, "*1\r\n$4\r\nPING\r\n", count);
  } else {
    std::printf("redis-server is not installed: left out\n");
  }
}

// How late a lease ends: until the next waiter has read its grant. The lease began at some moment
// between the sending of the request for it and the reading of its reply. Lags are counted from the
// earlier one, so that none is told too small; a grant that comes before it is early for certain.

constexpr auto kLease = 1s;

struct Waiting {
  ClientSocket socket;
  Clock::time_point deadline;  // the earliest it can be
};

std::vector<Waiting> wait_for_leases(std::uint16_t port, ClientSocket& holder, int leases) {
  std::vector<Waiting> waiting;
  for (int i = 0; i < leases; ++i) waiting.push_back({ClientSocket(port), {}});
  for (int i = 0; i < leases; ++i) {
    const std::string key = "key-" + std::to_string(i);
    Waiting& next = waiting[static_cast<std::size_t>(i)];
    next.deadline = Clock::now() + kLease;
    if (!holder.ask(line_request("l", key, "0 1")).starts_with("ok ")) {
      throw std::runtime_error("a lease was not granted");
    }
    next.socket.send(line_request("l", key, "30 30"));
  }
  return waiting;
}

std::vector<Clock::duration> lags_of(std::vector<Waiting>& waiting) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  for (Waiting& one : waiting) {
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &one}};
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, one.socket.descriptor(), &event);
  }
  std::vector<Clock::duration> lags;
  while (lags.size() < waiting.size()) {
    epoll_event event;
    if (::epoll_wait(epoll, &event, 1, 10'000) != 1) throw std::runtime_error("a grant is missing");
    Waiting& one = *static_cast<Waiting*>(event.data.ptr);
    std::array<char, 256> buffer;
    if (!one.socket.receive(buffer).starts_with("ok ")) {
      throw std::runtime_error("a waiter was refused");
    }
    lags.push_back(Clock::now() - one.deadline);
  }
  ::close(epoll);
  return lags;
}

void expiry_lag(int leases, int rounds) {
  std::vector<Clock::duration> lags;
  for (int round = 0; round < rounds; ++round) {
    const ChildServer server(lockd_command());
    ClientSocket holder(server.port());
    std::vector<Waiting> waiting = wait_for_leases(server.port(), holder, leases);
    const auto some = lags_of(waiting);
    lags.insert(lags.end(), some.begin(), some.end());
  }
  std::sort(lags.begin(), lags.end());
  if (lags.front() < 0s) throw std::runtime_error("a lease ended early");
  const auto at = [&](double p) {
    return Millis(lags[static_cast<std::size_t>(p * static_cast<double>(lags.size() - 1))]).count();
  };
  record("expiry_lag", {{"where", "socket"},
                        {"leases", leases},
                        {"p50_ms", at(0.5)},
                        {"p99_ms", at(0.99)},
                        {"max_ms", at(1)}});
  std::printf(
      "expiry lag through the socket, %d times %d leases of 1 s, taken one after another: p50 %.3f "
      "ms, p99 %.3f ms, max %.3f ms\n",
      rounds, leases, at(0.5), at(0.99), at(1));
}

void run() {
  std::printf("%s\n", pin_load().c_str());
  connection_memory();
  expiry_lag(500, 3);
}

}  // namespace
}  // namespace lockd::bench

int main() {
  try {
    lockd::bench::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "server_figures: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
