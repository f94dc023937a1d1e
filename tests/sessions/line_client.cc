#include "sessions/line_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
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

namespace lockd {
namespace {

constexpr std::size_t kTokenSize = 32;

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

LineClient::LineClient(std::uint16_t port, int receive_buffer)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (receive_buffer > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) close();
}

LineClient::LineClient(LineClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      unread_(std::move(other.unread_)),
      taken_(other.taken_) {}

LineClient& LineClient::operator=(LineClient&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(unread_, other.unread_);
  std::swap(taken_, other.taken_);
  return *this;
}

bool LineClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
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
    pollfd readable{socket_, POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(std::max<long>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::string(kSilence);
    std::array<char, 64 * 1024> bytes;
    const ssize_t size = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (size < 0) return std::string(kReset);
    // A line that was begun and never ended is no end to be content with.
    if (size == 0) return unread_.empty() ? std::string(kEnd) : "<cut off>" + unread_;
    unread_.append(bytes.data(), static_cast<std::size_t>(size));
  }
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

void LineClient::half_close() { ::shutdown(socket_, SHUT_WR); }

void LineClient::reset() {
  const linger none{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close();
}

void LineClient::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

Options line_options() {
  Options options;
  options.host = "127.0.0.1";
  options.port = 0;
  options.threads = 2;
  return options;
}

LineServer::LineServer(const Options& options) : server_(options) {
  static const bool quiet = [] {
    set_up_log(LogLevel::error, LogFormat::text);
    return true;
  }();
  static_cast<void>(quiet);
  if (const std::string error = server_.start(); !error.empty()) {
    std::fprintf(stderr, "the server does not start: %s\n", error.c_str());
    std::abort();
  }
  port_ = server_.port();
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
