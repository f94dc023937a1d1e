#include "histories/client_pool.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace lockd::histories {
namespace {

constexpr int kTickMs = 5;

}  // namespace

ClientPool::ClientPool(std::uint64_t seed) : epoll_(::epoll_create1(EPOLL_CLOEXEC)), random_(seed) {
  watch_ = [this](int socket, Actor& actor, bool writing, bool is_new) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    if (writing) event.events |= EPOLLOUT;
    event.data.ptr = &actor;
    ::epoll_ctl(epoll_, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event);
  };
}

ClientPool::~ClientPool() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  ::close(epoll_);
}

void ClientPool::start() {
  thread_ = std::thread([this] { run(); });
}

void ClientPool::pause(std::uint16_t server, unsigned one_in, Instant lasting) {
  strike_later({server, one_in, [until = now() + lasting](Actor& actor) { actor.pause(until); }});
}

void ClientPool::keep(std::uint16_t server, unsigned one_in, Instant lasting) {
  strike_later({server, one_in, [until = now() + lasting](Actor& actor) { actor.keep(until); }});
}

void ClientPool::kill(std::uint16_t server, unsigned one_in) {
  strike_later({server, one_in, [](Actor& actor) { actor.die(); }});
}

void ClientPool::strike_later(Blow blow) {
  const std::lock_guard lock(mutex_);
  blows_.push_back(std::move(blow));
}

bool ClientPool::finish(Instant patience) {
  finishing_ = true;
  for (const Instant deadline = now() + patience; !finished_ && now() < deadline;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kTickMs));
  }
  stopping_ = true;
  thread_.join();
  return finished_;
}

void ClientPool::run() {
  std::array<epoll_event, 256> events;
  Instant next_tick = 0;
  while (!stopping_) {
    const int count = ::epoll_wait(epoll_, events.data(), events.size(), kTickMs);
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      const bool ending = (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
      static_cast<Actor*>(event.data.ptr)->ready(watch_, ending);
    }
    if (now() < next_tick) continue;
    next_tick = now() + kTickMs * 1'000'000;
    tick();
  }
}

void ClientPool::tick() {
  std::vector<Blow> blows;
  {
    const std::lock_guard lock(mutex_);
    blows.swap(blows_);
  }
  for (const Blow& blow : blows) strike(blow);
  for (const auto& actor : actors_) {
    if (finishing_) actor->finish();
    actor->tick(now(), watch_);
  }
  finished_ = std::all_of(actors_.begin(), actors_.end(),
                          [](const auto& actor) { return actor->finished(); });
}

void ClientPool::strike(const Blow& blow) {
  for (const auto& actor : actors_) {
    const bool is_meant = actor->role().subject->settings().number == blow.server;
    if (is_meant && random_() % blow.one_in == 0) blow.how(*actor);
  }
}

}  // namespace lockd::histories
