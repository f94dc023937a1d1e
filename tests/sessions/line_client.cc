#include "sessions/line_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
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
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "server/log.h"
#include "server/server.h"
#include "sessions/test_authority.h"

namespace lockd {
namespace {

constexpr std::size_t kTokenSize = 32;
constexpr timeval kSocketPatience{.tv_sec = LineClient::kPatience.count(), .tv_usec = 0};

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

bool is_token(std::string_view word) {
  return word.size() == kTokenSize &&
         word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Where the token of a grant begins, or npos.
std::size_t find_token(std::string_view reply) {
  const std::size_t space = reply.find(' ');
  if (space == std::string_view::npos) return space;
  const std::string_view rest = reply.substr(space + 1);
  return is_token(rest.substr(0, rest.find(' '))) ? space + 1 : std::string_view::npos;
}

}  // namespace

LineClient::LineClient(std::uint16_t port, int receive_buffer, bool tls)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &kSocketPatience, sizeof kSocketPatience);
  if (receive_buffer > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close();
  } else if (tls) {
    shake_hands();
  }
}

void LineClient::shake_hands() {
  ::fcntl(socket_, F_SETFL, O_NONBLOCK);
  tls_mutex_ = std::make_unique<std::mutex>();
  tls_.reset(SSL_new(client_context()));
  SSL_set_fd(tls_.get(), socket_);
  // A failure shows in what is read or written.
  patiently([this] { return SSL_connect(tls_.get()); });
}

// Tries until it is done, failed, or kPatience is over. One thread may send while another reads: so
// nobody waits with the mutex held.
long LineClient::patiently(const std::function<int()>& operation) {
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

LineClient::LineClient(LineClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      tls_(std::move(other.tls_)),
      tls_mutex_(std::move(other.tls_mutex_)),
      unread_(std::move(other.unread_)),
      taken_(other.taken_) {}

LineClient& LineClient::operator=(LineClient&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(tls_, other.tls_);
  std::swap(tls_mutex_, other.tls_mutex_);
  std::swap(unread_, other.unread_);
  std::swap(taken_, other.taken_);
  return *this;
}

bool LineClient::send(std::string_view bytes) {
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

bool LineClient::send_bytewise(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!send(bytes.substr(i, 1))) return false;
  }
  return true;
}

bool LineClient::send_split(std::string_view bytes, std::size_t at,
                            std::chrono::milliseconds pause) {
  if (!send(bytes.substr(0, at))) return false;
  std::this_thread::sleep_for(pause);
  return send(bytes.substr(at));
}

std::string LineClient::read_line(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  std::size_t searched = taken_;
  for (;;) {
    if (const std::size_t end = unread_.find('\n', searched); end != std::string::npos) {
      std::string line = unread_.substr(taken_, end - taken_);
      taken_ = end + 1;
      return line;
    }
    unread_.erase(0, std::exchange(taken_, 0));
    searched = unread_.size();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (!has_pending()) {
      pollfd readable{socket_, POLLIN, 0};
      const int ready = ::poll(&readable, 1, static_cast<int>(std::max<long>(left, 0)));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return std::string(kSilence);
    }
    std::array<char, 64 * 1024> bytes;
    const long size = receive(bytes);
    if (size < 0) return std::string(kReset);
    // A line that was begun and never ended is no end to be content with.
    if (size == 0) return unread_.empty() ? std::string(kEnd) : "<cut off>" + unread_;
    unread_.append(bytes.data(), static_cast<std::size_t>(size));
  }
}

std::string LineClient::read_some() {
  pollfd readable{socket_, POLLIN, 0};
  constexpr auto patience = std::chrono::milliseconds(kPatience).count();
  if (::poll(&readable, 1, static_cast<int>(patience)) <= 0) return {};
  std::array<char, 64 * 1024> bytes;
  const long size = receive(bytes);
  return {bytes.data(), static_cast<std::size_t>(std::max(size, 0L))};
}

long LineClient::receive(std::span<char> bytes) {
  if (tls_ == nullptr) return ::recv(socket_, bytes.data(), bytes.size(), 0);
  return patiently(
      [&] { return SSL_read(tls_.get(), bytes.data(), static_cast<int>(bytes.size())); });
}

bool LineClient::has_pending() {
  if (tls_ == nullptr) return false;
  const std::lock_guard lock(*tls_mutex_);
  return SSL_pending(tls_.get()) > 0;
}

std::string LineClient::ask(std::string_view request) {
  send(request);
  return read_line();
}

std::vector<std::string> LineClient::read_lines(std::size_t count) {
  std::vector<std::string> lines;
  while (lines.size() < count) {
    lines.push_back(read_line());
    if (lines.back().starts_with('<')) break;
  }
  return lines;
}

std::vector<std::string> LineClient::read_to_end() {
  std::vector<std::string> lines;
  do {
    lines.push_back(read_line());
  } while (!lines.back().starts_with('<'));
  return lines;
}

void LineClient::half_close() {
  if (tls_ != nullptr) patiently([this] { return SSL_shutdown(tls_.get()) >= 0 ? 1 : -1; });
  ::shutdown(socket_, SHUT_WR);
}

void LineClient::reset() {
  const linger none{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close();
}

void LineClient::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

bool tests_use_tls() {
  static const bool use = std::getenv("LOCKD_TEST_TLS") != nullptr;
  return use;
}

Options line_options() {
  Options options;
  options.host = "127.0.0.1";
  options.port = 0;
  options.threads = 2;
  if (tests_use_tls()) {
    options.tls_cert = test_authority().certificate("server");
    options.tls_key = test_authority().key("server");
  }
  return options;
}

LineServer::LineServer(const Options& options)
    : server_(std::make_unique<Server>(with_journal(options))), tls_(!options.tls_cert.empty()) {
  static const bool quiet = [] {
    set_up_log(LogLevel::error, LogFormat::text);
    return true;
  }();
  static_cast<void>(quiet);
  if (const std::string error = server_->start(); !error.empty()) {
    std::fprintf(stderr, "the server does not start: %s\n", error.c_str());
    std::abort();
  }
  port_ = server_->port();
}

LineServer::~LineServer() = default;

Options LineServer::with_journal(Options options) {
  if (std::getenv("LOCKD_TEST_WAL") == nullptr || !options.wal.empty()) return options;
  options.wal = journal_.emplace().path();
  return options;
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::string request(std::string_view command, std::string_view key, std::string_view argument) {
  std::string bytes;
  for (const std::string_view line : {command, key, argument}) {
    bytes += line;
    bytes += '\n';
  }
  return bytes;
}

std::string masked(std::string_view reply) {
  std::string text(reply);
  if (const std::size_t at = find_token(reply); at != std::string_view::npos) {
    text.replace(at, kTokenSize, "<token>");
  }
  return text;
}

std::string token_of(std::string_view reply) {
  const std::size_t at = find_token(reply);
  return at == std::string_view::npos ? std::string() : std::string(reply.substr(at, kTokenSize));
}

std::string await_stats(LineClient& client, std::string_view part) {
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  for (;;) {
    std::string reply = client.ask(request("stats", "", ""));
    if (reply.find(part) != std::string::npos || reply.starts_with('<')) return reply;
    if (LineClient::Clock::now() > deadline) return reply;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace lockd
