// A port of this machine at which nobody listens, and which nobody else gets meanwhile.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "support/loopback.h"

namespace lockd {

class SilentPort {
 public:
  SilentPort() {
    if (socket_ < 0) throw std::system_error(errno, std::generic_category(), "a port");
  }
  ~SilentPort() { ::close(socket_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  std::uint16_t number() const { return port_of(socket_); }

 private:
  const int socket_ = bind_to_loopback(0);
};

}  // namespace lockd
