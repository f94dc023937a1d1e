// What systemd and a service say to each other: datagrams to it, descriptors from it.
//
// Every call does nothing when systemd did not start the process, or did not ask for it. For the
// first thread only. See sd_notify(3) and sd_listen_fds(3) for the protocols; they are a few lines,
// so there is no library.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "config/environment.h"

namespace lockd {

class Systemd {
 public:
  struct Socket {
    int descriptor;
    std::string name;  // FileDescriptorName= of its unit
  };

  explicit Systemd(const config::Environment& environment);

  void ready() const { tell("READY=1"); }
  // ready() says that it is done.
  void reloading() const;
  void stopping() const { tell("STOPPING=1"); }
  void alive() const { tell("WATCHDOG=1"); }

  // How often alive() is expected; zero if never.
  std::chrono::microseconds watchdog() const { return watchdog_; }
  // The listening sockets that were passed to this process, in their order.
  const std::vector<Socket>& sockets() const { return sockets_; }

 private:
  void tell(std::string_view state) const;

  std::string address_;
  std::chrono::microseconds watchdog_{};
  std::vector<Socket> sockets_;
};

}  // namespace lockd
