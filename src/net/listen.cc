#include "net/listen.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace lockd {
namespace {

constexpr int kBacklog = 4096;

struct LocalAddress {
  int family = AF_UNSPEC;
  std::uint16_t port = 0;
};

LocalAddress local_address(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  if (address.ss_family == AF_INET6) {
    return {AF_INET6, ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port)};
  }
  return {address.ss_family, ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port)};
}

int socket_option(int descriptor, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

// None, with errno set, when it cannot be.
Descriptor open_at(const addrinfo& at) {
  Descriptor opened(
      ::socket(at.ai_family, at.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at.ai_protocol));
  if (!opened) return opened;
  const int descriptor = opened.get();
  const int on = 1;
  const int off = 0;
  // A server that restarts must not wait for the connections of its predecessor to be forgotten.
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.ai_family == AF_INET6) {
    ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(descriptor, at.ai_addr, at.ai_addrlen) == 0 && ::listen(descriptor, kBacklog) == 0) {
    return opened;
  }
  const int error = errno;
  opened.reset();
  errno = error;
  return opened;
}

}  // namespace

ListeningSocket listen_on(const std::string& host, std::uint16_t port) {
  const std::string service = std::to_string(port);
  const std::string where = (host.empty() ? "every address" : host) + ", port " + service;
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  // Of every address IPv6's is asked for first: it serves both families.
  std::vector<int> families{AF_UNSPEC};
  if (host.empty()) families = {AF_INET6, AF_INET};
  for (const int family : families) {
    hints.ai_family = family;
    addrinfo* found = nullptr;
    const int error =
        ::getaddrinfo(host.empty() ? nullptr : host.c_str(), service.c_str(), &hints, &found);
    if (error != 0) {
      return {.error = "cannot listen on " + where + ": " + ::gai_strerror(error)};
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    if (Descriptor opened = open_at(*found)) {
      const std::uint16_t taken = local_address(opened.get()).port;
      return {.descriptor = std::move(opened), .port = taken};
    }
    if (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL) break;  // else: no IPv6 here
  }
  const bool is_taken = errno == EADDRINUSE;
  return {.error = "cannot listen on " + where + ": " + std::strerror(errno) +
                   (is_taken ? "; stop what listens there, or choose another port" : "")};
}

ListeningSocket adopt_listener(int descriptor) {
  const LocalAddress address = local_address(descriptor);
  const bool is_tcp = (address.family == AF_INET || address.family == AF_INET6) &&
                      socket_option(descriptor, SO_TYPE) == SOCK_STREAM;
  if (!is_tcp || socket_option(descriptor, SO_ACCEPTCONN) != 1) {
    return {.error = "the socket that was passed, descriptor " + std::to_string(descriptor) +
                     ", is not a listening TCP socket"};
  }
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  return {.descriptor = Descriptor(descriptor), .port = address.port};
}

}  // namespace lockd
