#include "client_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "support/loopback.h"

namespace lockd::bench {
namespace {

// A socket that is connected, or -1.
int try_connect(std::uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (descriptor >= 0 &&
      ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    be_prompt(descriptor);
    return descriptor;
  }
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  errno = error;
  return -1;
}

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

}  // namespace

ClientSocket::ClientSocket(std::uint16_t port) : descriptor_(try_connect(port)) {
  if (descriptor_ < 0) fail("cannot connect to port " + std::to_string(port));
}

ClientSocket::~ClientSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ClientSocket::ClientSocket(ClientSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

void ClientSocket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) fail("cannot send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string_view ClientSocket::receive(std::span<char> buffer) {
  const ssize_t size = ::recv(descriptor_, buffer.data(), buffer.size(), 0);
  if (size < 0) fail("cannot receive");
  if (size == 0) throw std::runtime_error("the server has closed a connection");
  return {buffer.data(), static_cast<std::size_t>(size)};
}

std::string ClientSocket::ask(std::string_view request) {
  send(request);
  std::array<char, 512> buffer;
  std::string reply;
  do {
    reply += receive(buffer);
  } while (!reply.ends_with('\n'));
  while (reply.ends_with('\n') || reply.ends_with('\r')) reply.pop_back();
  return reply;
}

bool is_served(std::uint16_t port) {
  const int descriptor = try_connect(port);
  if (descriptor >= 0) ::close(descriptor);
  return descriptor >= 0;
}

}  // namespace lockd::bench
