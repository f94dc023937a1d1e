#include "support/client_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <thread>
#include <utility>

#include "support/test_authority.h"

namespace lockd {
namespace {

constexpr timeval kSocketPatience{.tv_sec = ClientSocket::kPatience.count(), .tv_usec = 0};

// One for all clients: it trusts the tests' authority, and shows a certificate of it when asked.
SSL_CTX* client_context() {
  static SSL_CTX* const context = [] {
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without asking to be spared it
    SSL_CTX* const made = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    const TestAuthority& authority = test_authority();
    SSL_CTX_load_verify_file(made, authority.certificate("ca").c_str());
    SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_use_certificate_file(made, authority.certificate("client").c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(made, authority.key("client").c_str(), SSL_FILETYPE_PEM);
    return made;
  }();
  return context;
}

}  // namespace

bool tests_use_tls() {
  static const bool use = std::getenv("LOCKD_TEST_TLS") != nullptr;
  return use;
}

ClientSocket::ClientSocket(const To& to) {
  if (!connect(to)) {
    close();
  } else if (to.tls) {
    shake_hands();
  }
}

bool ClientSocket::connect(const To& to) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found) != 0) {
    return false;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> address(found, &::freeaddrinfo);
  socket_ = ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &kSocketPatience, sizeof kSocketPatience);
  if (to.receive_buffer > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &to.receive_buffer, sizeof to.receive_buffer);
  }
  if (!to.from.empty()) {
    sockaddr_in from{};
    from.sin_family = AF_INET;
    if (::inet_pton(AF_INET, to.from.c_str(), &from.sin_addr) != 1 ||
        ::bind(socket_, reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0) {
      return false;
    }
  }
  return ::connect(socket_, address->ai_addr, address->ai_addrlen) == 0;
}

void ClientSocket::shake_hands() {
  ::fcntl(socket_, F_SETFL, O_NONBLOCK);
  tls_mutex_ = std::make_unique<std::mutex>();
  tls_.reset(SSL_new(client_context()));
  SSL_set_fd(tls_.get(), socket_);
  // A failure shows in what is read or written.
  patiently([this] { return SSL_connect(tls_.get()); });
}

// Tries until it is done, failed, or kPatience is over. One thread may send while another reads: so
// nobody waits with the mutex held.
long ClientSocket::patiently(const std::function<int()>& operation) {
  for (;;) {
    short wanted = 0;
    {
      const std::lock_guard lock(*tls_mutex_);
      ERR_clear_error();
      errno = 0;
      const int result = operation();
      if (result > 0) return result;
      const int error = SSL_get_error(tls_.get(), result);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
        return errno == ECONNRESET || errno == EPIPE ? -1 : 0;
      }
      wanted = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    }
    pollfd ready{socket_, wanted, 0};
    constexpr auto patience = std::chrono::milliseconds(kPatience).count();
    if (::poll(&ready, 1, static_cast<int>(patience)) <= 0) return 0;
  }
}

ClientSocket::ClientSocket(ClientSocket&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      tls_(std::move(other.tls_)),
      tls_mutex_(std::move(other.tls_mutex_)) {}

ClientSocket& ClientSocket::operator=(ClientSocket&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(tls_, other.tls_);
  std::swap(tls_mutex_, other.tls_mutex_);
  return *this;
}

bool ClientSocket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const long sent = tls_ != nullptr ? patiently([&] {
      return SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()));
    })
                                      : ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool ClientSocket::send_bytewise(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!send(bytes.substr(i, 1))) return false;
  }
  return true;
}

bool ClientSocket::send_split(std::string_view bytes, std::size_t at,
                              std::chrono::milliseconds pause) {
  if (!send(bytes.substr(0, at))) return false;
  std::this_thread::sleep_for(pause);
  return send(bytes.substr(at));
}

std::string_view ClientSocket::append_some(std::string& bytes, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (!has_pending()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd readable{socket_, POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(std::max<long>(left, 0)));
    if (ready > 0) break;
    if (ready == 0 || errno != EINTR) return kSilence;
  }
  std::array<char, 64 * 1024> some;
  const long size = receive(some);
  if (size <= 0) return size < 0 ? kReset : kEnd;
  bytes.append(some.data(), static_cast<std::size_t>(size));
  return {};
}

long ClientSocket::receive(std::span<char> bytes) {
  if (tls_ == nullptr) return ::recv(socket_, bytes.data(), bytes.size(), 0);
  return patiently(
      [&] { return SSL_read(tls_.get(), bytes.data(), static_cast<int>(bytes.size())); });
}

bool ClientSocket::has_pending() {
  if (tls_ == nullptr) return false;
  const std::lock_guard lock(*tls_mutex_);
  return SSL_pending(tls_.get()) > 0;
}

void ClientSocket::half_close() {
  if (tls_ != nullptr) patiently([this] { return SSL_shutdown(tls_.get()) >= 0 ? 1 : -1; });
  ::shutdown(socket_, SHUT_WR);
}

void ClientSocket::reset() {
  const linger none{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close();
}

void ClientSocket::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

}  // namespace lockd
