#include "client/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace lockd::client {
namespace {

void set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

void tune(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

Socket::Socket(std::shared_ptr<const Endpoint> endpoint, SocketAddresses addresses, Time now,
               Time deadline)
    : endpoint_(std::move(endpoint)),
      addresses_(std::move(addresses)),
      deadline_(deadline),
      attempt_deadline_(deadline) {
  connect_next(now);
}

// Begins with the next address that does not fail at once.
void Socket::connect_next(Time now) {
  while (next_address_ < addresses_.size()) {
    drop();
    const auto left = static_cast<BootClock::rep>(addresses_.size() - next_address_);
    attempt_deadline_ = now + std::max(deadline_ - now, BootClock::duration{}) / left;
    const SocketAddress& address = addresses_[next_address_++];
    socket_ = ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ >= 0 && ::connect(socket_, address.get(), address.size) == 0) return;
    if (socket_ >= 0 && errno == EINPROGRESS) return;
    connect_error_ = errno;
  }
  close(
      {Outcome::unreachable, "cannot connect to " + name() + ": " + std::strerror(connect_error_)});
}

pollfd Socket::interest() const {
  if (is_closed()) return {.fd = -1};
  if (state_ == State::connecting) return {.fd = socket_, .events = POLLOUT};
  const bool unsent = tls_ == nullptr ? !output_.empty() : !tls_->sealed().empty();
  return {.fd = socket_, .events = static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN)};
}

void Socket::advance(Time now) {
  if (is_closed()) return;
  if (state_ == State::connecting) finish_connecting(now);
  if (state_ == State::shaking_hands || state_ == State::open) {
    write();
    if (!is_closed()) read();
  }
  if (!is_open() && !is_closed() && now >= deadline_) {
    const char* const what = state_ == State::connecting ? "connect to " : "agree on TLS with ";
    close({Outcome::unreachable, std::string("cannot ") + what + name() + " in time"});
  }
}

void Socket::finish_connecting(Time now) {
  pollfd ready = interest();
  if (::poll(&ready, 1, 0) <= 0) {
    if (now < attempt_deadline_ || next_address_ == addresses_.size()) return;
    connect_error_ = ETIMEDOUT;
    return connect_next(now);
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    connect_error_ = error;
    return connect_next(now);
  }
  tune(socket_);
  start_tls();
}

void Socket::start_tls() {
  state_ = endpoint_->tls == nullptr ? State::open : State::shaking_hands;
  if (is_open()) {
    deadline_ = kNever;
    return;
  }
  tls_ = endpoint_->tls->open_channel(endpoint_->address.host);
  if (tls_ == nullptr) {
    return close({Outcome::invalid, "no certificate can be for " + endpoint_->address.host});
  }
  take_in({});  // brings forth what we say first
  write();
}

void Socket::read() {
  std::array<char, TlsChannel::kPiece> bytes;
  for (std::size_t total = 0; total < kReadMax && !is_closed();) {
    const ssize_t size = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (size < 0 && would_block(errno)) break;
    if (size <= 0) return lose_peer(size < 0 ? errno : 0);
    total += static_cast<std::size_t>(size);
    heard_ = true;
    const std::string_view received(bytes.data(), static_cast<std::size_t>(size));
    if (tls_ == nullptr) {
      input_.append(received);
    } else if (!take_in(received)) {
      return;
    }
  }
  if (tls_ != nullptr && !is_closed()) write();  // what the handshake wants to say
}

// Opens what came over TLS. False when it cannot go on.
bool Socket::take_in(std::string_view bytes) {
  using Progress = TlsChannel::Progress;
  tls_->receive(bytes);
  std::array<char, TlsChannel::kPiece> plain;
  for (;;) {
    std::size_t size = 0;
    const Progress progress = tls_->open(plain, size);
    if (state_ == State::shaking_hands && tls_->established()) {
      state_ = State::open;
      deadline_ = kNever;
    }
    if (progress == Progress::more) {
      input_.append(plain.data(), size);
      continue;
    }
    if (progress == Progress::failed) fail_tls();
    if (progress == Progress::ended) lose_peer(0);
    return progress == Progress::drained;
  }
}

void Socket::fail_tls() {
  write();  // the alert that says why
  const long verdict = tls_->verify_result();
  if (!is_open() && verdict != X509_V_OK && endpoint_->options.tls->verify) {
    return close({Outcome::untrusted, "cannot verify the certificate of " + name() + ": " +
                                          ::X509_verify_cert_error_string(verdict)});
  }
  const Outcome outcome = is_open() ? Outcome::disconnected : Outcome::unreachable;
  close({outcome, "TLS with " + name() + " failed: " + std::string(tls_->error())});
}

void Socket::send(std::string_view bytes) {
  if (!is_open()) return;
  if (tls_ == nullptr) {
    output_.append(bytes);
  } else if (!tls_->seal(bytes)) {
    return fail_tls();
  }
  write();
}

void Socket::write() {
  std::string& bytes = outgoing();
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t size = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (size < 0) {
      // What the peer said before it went away is still to be read: that finds the end, too.
      if (!would_block(errno)) sent = bytes.size();
      break;
    }
    sent += static_cast<std::size_t>(size);
  }
  bytes.erase(0, sent);
}

void Socket::give_up_unacknowledged_after(Duration patience) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  constexpr decltype(ms) kMax = 24 * 60 * 60 * 1000;
  set(socket_, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::clamp(ms, 1L, kMax)));
}

void Socket::lose_peer(int error) {
  std::string why = error == 0 ? "it closed the connection" : std::strerror(error);
  if (error == 0 && tls_ == nullptr && !heard_) why += " without a word; it may want TLS";
  const Outcome outcome = is_open() ? Outcome::disconnected : Outcome::unreachable;
  close({outcome, "lost " + name() + ": " + why});
}

void Socket::close(Status why) {
  if (is_closed()) return;
  if (tls_ != nullptr && is_open()) {
    tls_->end();
    write();
  }
  state_ = State::closed;
  failure_ = std::move(why);
  drop();
}

void Socket::drop() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

}  // namespace lockd::client
