// A port of this machine at which nobody listens, and which nobody else gets meanwhile.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace lockd {

class SilentPort {
 public:
  SilentPort() {
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const address = reinterpret_cast<sockaddr*>(&address_);
    socklen_t size = sizeof address_;
    if (::bind(socket_, address, size) != 0 || ::getsockname(socket_, address, &size) != 0) {
      throw std::system_error(errno, std::generic_category(), "a port");
    }
  }
  ~SilentPort() { ::close(socket_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  std::uint16_t number() const { return ntohs(address_.sin_port); }

 private:
  int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address_{.sin_family = AF_INET};
};

}  // namespace lockd
