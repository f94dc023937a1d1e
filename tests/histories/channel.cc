#include "histories/channel.h"

#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "support/loopback.h"
#include "support/test_authority.h"

namespace lockd::histories {
namespace {

SSL_CTX* client_context() {
  static SSL_CTX* const context = [] {
    SSL_CTX* const made = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_load_verify_file(made, test_authority().certificate("ca").c_str());
    SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
    return made;
  }();
  return context;
}

}  // namespace

Channel::Channel(std::uint16_t port, bool tls) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  be_prompt(socket_);
  const sockaddr_in address = loopback(port);
  ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (!tls) return;
  tls_.reset(SSL_new(client_context()));
  SSL_set_fd(tls_.get(), socket_);
  SSL_set_connect_state(tls_.get());
}

Channel::~Channel() {
  tls_.reset();
  ::close(socket_);
}

std::uint16_t Channel::local_port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

void Channel::reset_on_close() {
  const linger none{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

bool Channel::advance(std::string& received, bool ending) {
  wants_to_write_ = false;
  return flush() && fill(received, ending) && (tls_ == nullptr || flush());
}

bool Channel::flush() {
  while (!unsent_.empty()) {
    const long sent = write(unsent_);
    if (sent < 0) return false;
    if (sent == 0) {
      wants_to_write_ = tls_ == nullptr || SSL_want_write(tls_.get()) != 0;
      return true;
    }
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

bool Channel::fill(std::string& received, bool ending) {
  std::array<char, 16 * 1024> bytes;
  for (;;) {
    const long size = read(bytes.data(), bytes.size());
    if (size <= 0) return size == 0;
    received.append(bytes.data(), static_cast<std::size_t>(size));
    const bool all = tls_ == nullptr && static_cast<std::size_t>(size) < bytes.size();
    if (all && !ending) return true;
  }
}

long Channel::write(std::string_view bytes) {
  if (tls_ != nullptr) {
    ERR_clear_error();
    return outcome(SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())));
  }
  const long sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return sent;
  const bool later = errno == EAGAIN || errno == EINPROGRESS || errno == ENOTCONN;
  return later ? 0 : -1;
}

long Channel::read(char* bytes, std::size_t size) {
  if (tls_ != nullptr) {
    ERR_clear_error();
    return outcome(SSL_read(tls_.get(), bytes, static_cast<int>(size)));
  }
  const long received = ::recv(socket_, bytes, size, 0);
  if (received > 0) return received;
  const bool later = received < 0 && (errno == EAGAIN || errno == ENOTCONN);
  return later ? 0 : -1;
}

long Channel::outcome(long result) {
  if (result > 0) return result;
  const int error = SSL_get_error(tls_.get(), static_cast<int>(result));
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

}  // namespace lockd::histories
