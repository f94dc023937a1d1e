// A port of this machine as it is met from far away: every byte that passes takes its time, and
// none overtakes another.
//
// Threads of its own, two for each direction of each connection: a test has a few of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <thread>

namespace lockd::ha_test {

class DistantPort {
 public:
  // What goes either way is `distance` late.
  DistantPort(std::uint16_t upstream, std::chrono::milliseconds distance);
  ~DistantPort();
  DistantPort(const DistantPort&) = delete;
  DistantPort& operator=(const DistantPort&) = delete;

  // To connect to instead.
  std::uint16_t port() const { return port_; }

 private:
  class Pipe;
  class Link;

  void accept();

  const std::uint16_t upstream_;
  const std::chrono::milliseconds distance_;
  const int socket_;
  const std::uint16_t port_;
  std::list<Link> links_;  // the acceptor's, until it has ended
  std::thread acceptor_;
};

}  // namespace lockd::ha_test
