#include "load/swarm.h"

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace lockd {
namespace {

using Resolved = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Resolved resolve(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  EXPECT_EQ(error, 0) << address << ": " << ::gai_strerror(error);
  return {found, &::freeaddrinfo};
}

// A connected socket that does not block any more, or -1 with errno set.
int connect_socket(const addrinfo& to, const addrinfo* from, int receive_buffer) {
  const int socket = ::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (receive_buffer > 0) {
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  const bool bound = from == nullptr || ::bind(socket, from->ai_addr, from->ai_addrlen) == 0;
  if (bound && ::connect(socket, to.ai_addr, to.ai_addrlen) == 0) {
    ::ioctl(socket, FIONBIO, &on);
    return socket;
  }
  const int error = errno;
  ::close(socket);
  errno = error;
  return -1;
}

}  // namespace

Swarm::Swarm(std::uint16_t port) : port_(port), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

Swarm::~Swarm() {
  close_all();
  ::close(epoll_);
}

bool Swarm::connect(std::size_t count, const Route& route, int receive_buffer) {
  const Resolved to = resolve(route.to, port_);
  const Resolved from =
      route.from.empty() ? Resolved(nullptr, &::freeaddrinfo) : resolve(route.from, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const int socket = connect_socket(*to, from.get(), receive_buffer);
    if (socket < 0) {
      ADD_FAILURE() << "client " << members_.size() << ": " << std::strerror(errno);
      return false;
    }
    epoll_event readable{};
    readable.events = EPOLLIN;
    readable.data.u64 = members_.size();
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &readable);
    members_.push_back({.socket = socket});
    ++open_;
  }
  return true;
}

std::size_t Swarm::offer(std::size_t who, std::string_view bytes) {
  if (!is_open(who)) return 0;
  const ssize_t sent = ::send(members_[who].socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return sent < 0 ? 0 : static_cast<std::size_t>(sent);
}

bool Swarm::send(std::size_t who, std::string_view bytes) {
  while (is_open(who)) {
    bytes.remove_prefix(offer(who, bytes));
    if (bytes.empty()) return true;
    pollfd writable{members_[who].socket, POLLOUT, 0};
    const auto patience = std::chrono::milliseconds(kPatience).count();
    if (::poll(&writable, 1, static_cast<int>(patience)) <= 0) return false;
    if ((writable.revents & (POLLERR | POLLHUP)) != 0) return false;
  }
  return false;
}

std::size_t Swarm::unacknowledged(std::size_t who) const {
  int size = 0;
  ::ioctl(members_[who].socket, SIOCOUTQ, &size);
  return static_cast<std::size_t>(size);
}

std::optional<Swarm::Arrival> Swarm::next(std::chrono::milliseconds patience) {
  if (arrivals_.empty() && !take_in_events(patience)) return std::nullopt;
  Arrival first = std::move(arrivals_.front());
  arrivals_.pop_front();
  return first;
}

std::size_t Swarm::discard(std::chrono::milliseconds time) {
  static thread_local std::array<char, 1024 * 1024> bytes;
  std::size_t dropped = 0;
  for (const auto deadline = Clock::now() + time; Clock::now() < deadline;) {
    std::array<epoll_event, 256> events;
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 10);
    for (int i = 0; i < count; ++i) {
      const std::size_t who = events[static_cast<std::size_t>(i)].data.u64;
      const ssize_t size = ::recv(members_[who].socket, bytes.data(), bytes.size(), 0);
      if (size > 0) dropped += static_cast<std::size_t>(size);
      if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) close(who);
    }
  }
  return dropped;
}

std::string Swarm::read_line(std::size_t who) {
  const auto deadline = Clock::now() + kPatience;
  do {
    const auto found = std::find_if(arrivals_.begin(), arrivals_.end(),
                                    [who](const Arrival& arrival) { return arrival.who == who; });
    if (found != arrivals_.end()) {
      std::string line = std::move(found->line);
      arrivals_.erase(found);
      return line;
    }
    take_in_events(std::chrono::milliseconds(100));
  } while (Clock::now() < deadline);
  return std::string(kSilence);
}

std::string Swarm::ask(std::size_t who, std::string_view request) {
  send(who, request);
  return read_line(who);
}

// False when nothing came in time.
bool Swarm::take_in_events(std::chrono::milliseconds patience) {
  const std::size_t before = arrivals_.size();
  const auto deadline = Clock::now() + patience;
  do {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    std::array<epoll_event, 256> events;
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                                   static_cast<int>(std::max<long>(left, 0)));
    for (int i = 0; i < count; ++i) take_in(events[static_cast<std::size_t>(i)].data.u64);
  } while (arrivals_.size() == before && Clock::now() < deadline);
  return arrivals_.size() > before;
}

void Swarm::take_in(std::size_t who) {
  std::array<char, 64 * 1024> bytes;
  const ssize_t size = ::recv(members_[who].socket, bytes.data(), bytes.size(), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    arrivals_.push_back({who, std::string(size < 0 ? kReset : kEnd)});
    return close(who);
  }
  std::string_view rest(bytes.data(), static_cast<std::size_t>(size));
  std::string& begun = members_[who].begun;
  for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos;) {
    arrivals_.push_back({who, std::exchange(begun, {}).append(rest.substr(0, end))});
    rest.remove_prefix(end + 1);
  }
  begun += rest;
}

std::size_t Swarm::ask_all(std::size_t who, std::size_t count, std::string_view answer,
                           const RequestOf& request_of) {
  constexpr std::size_t kAtATime = 1'000;
  std::size_t answered = 0;
  for (std::size_t asked = 0; asked < count;) {
    std::string requests;
    const std::size_t some = std::min(count - asked, kAtATime);
    for (std::size_t i = 0; i < some; ++i, ++asked) requests += request_of(asked);
    if (!send(who, requests)) return answered;
    for (std::size_t i = 0; i < some; ++i) answered += read_line(who).starts_with(answer);
  }
  return answered;
}

void Swarm::half_close(std::size_t who) { ::shutdown(members_[who].socket, SHUT_WR); }

void Swarm::reset(std::size_t who) {
  const linger none{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(members_[who].socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close(who);
}

void Swarm::close(std::size_t who) {
  if (!is_open(who)) return;
  ::close(std::exchange(members_[who].socket, -1));
  --open_;
}

void Swarm::close_all() {
  for (std::size_t who = 0; who < members_.size(); ++who) close(who);
}

}  // namespace lockd
