#include "histories/chaos_proxy.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "histories/chaos_link.h"
#include "histories/recording.h"
#include "support/loopback.h"

namespace lockd::histories {
namespace {

constexpr int kTickMs = 5;

}  // namespace

std::string_view ChaosProxy::name_of(LinkFault fault) {
  constexpr std::array<std::string_view, kFaults> kNames{
      "cut", "half_close", "delay", "split", "stall_up", "stall_down", "truncate"};
  return kNames[static_cast<std::size_t>(fault)];
}

ChaosProxy::ChaosProxy(std::uint64_t seed)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), random_(seed) {}

ChaosProxy::~ChaosProxy() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  for (const auto& acceptor : acceptors_) ::close(acceptor->socket);
  ::close(epoll_);
}

std::uint16_t ChaosProxy::listen(std::uint16_t server, std::function<Upstream()> upstream) {
  const int socket = listen_on_loopback(0, 1024);
  ::fcntl(socket, F_SETFL, O_NONBLOCK);
  acceptors_.push_back(std::make_unique<Acceptor>(Acceptor{socket, server, std::move(upstream)}));
  epoll_event event{.events = EPOLLIN, .data = {.fd = socket}};
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
  return port_of(socket);
}

void ChaosProxy::start() {
  thread_ = std::thread([this] { run(); });
}

void ChaosProxy::inject(LinkFault fault, std::uint16_t server, unsigned one_in, Instant lasting) {
  std::unique_lock lock(mutex_);
  injections_.push_back({fault, server, one_in, now() + lasting});
  const std::uint64_t mine = ++injections_made_;
  injected_.wait(lock, [&] { return injections_done_ >= mine; });
}

std::uint32_t ChaosProxy::life_of(std::uint16_t client_port) const {
  const std::lock_guard lock(mutex_);
  const auto found = lives_.find(client_port);
  return found == lives_.end() ? 0 : found->second;
}

void ChaosProxy::run() {
  std::array<epoll_event, 256> events;
  Instant next_tick = 0;
  while (!stopping_) {
    const int count = ::epoll_wait(epoll_, events.data(), events.size(), kTickMs);
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      const int socket = event.data.fd;
      const auto found = links_.find(socket);
      if (found == links_.end()) {
        for (const auto& acceptor : acceptors_) {
          if (acceptor->socket == socket) accept(*acceptor);
        }
        continue;
      }
      const std::shared_ptr<Link> link = found->second;
      const bool ending = (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
      if (link->advance(now(), ending)) continue;
      links_.erase(link->client());
      links_.erase(link->server());
    }
    if (now() < next_tick) continue;
    next_tick = now() + kTickMs * 1'000'000;
    tick();
  }
  links_.clear();
}

void ChaosProxy::accept(const Acceptor& acceptor) {
  for (;;) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const int client = ::accept4(acceptor.socket, reinterpret_cast<sockaddr*>(&peer), &size,
                                 SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) return;
    const Upstream upstream = acceptor.upstream();
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(upstream.port);
    const bool there =
        upstream.port != 0 &&
        ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (!there) {
      ::close(client);
      ::close(server);
      continue;
    }
    {
      const std::lock_guard lock(mutex_);
      lives_[ntohs(peer.sin_port)] = upstream.life;
    }
    const auto link = std::make_shared<Link>(client, server, acceptor.server);
    for (const int socket : {client, server}) {
      be_prompt(socket);
      ::fcntl(socket, F_SETFL, O_NONBLOCK);
      links_[socket] = link;
      // Edges: a link that is stalled is not asked about again, but by the tick.
      epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data = {.fd = socket}};
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
    }
  }
}

void ChaosProxy::inject_all() {
  const std::lock_guard lock(mutex_);
  for (const Injection& injection : injections_) inject(injection);
  injections_.clear();
  injections_done_ = injections_made_;
  injected_.notify_all();
}

void ChaosProxy::tick() {
  inject_all();
  const Instant at = now();
  std::vector<std::shared_ptr<Link>> over;
  for (const auto& [socket, link] : links_) {
    if (socket == link->client() && link->waits() && !link->advance(at, true)) over.push_back(link);
  }
  for (const auto& link : over) {
    links_.erase(link->client());
    links_.erase(link->server());
  }
}

void ChaosProxy::inject(const Injection& injection) {
  for (const auto& [socket, link] : links_) {
    if (socket != link->client() || link->of() != injection.server) continue;
    if (random_() % injection.one_in != 0) continue;
    link->break_it(injection.fault, injection.until, random_);
  }
}

}  // namespace lockd::histories
