// Actors, and the thread that they share.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "histories/actor.h"

namespace lockd::histories {

class ClientPool {
 public:
  explicit ClientPool(std::uint64_t seed);
  ~ClientPool();
  ClientPool(const ClientPool&) = delete;
  ClientPool& operator=(const ClientPool&) = delete;

  // Before start().
  void add(std::unique_ptr<Actor> actor) { actors_.push_back(std::move(actor)); }
  void start();

  // One in so many of the server's clients stands still for a while; or renews what it holds and
  // gives nothing back; or dies.
  void pause(std::uint16_t server, unsigned one_in, Instant lasting);
  void keep(std::uint16_t server, unsigned one_in, Instant lasting);
  void kill(std::uint16_t server, unsigned one_in);

  // Everybody gives back what they hold; returns when they have, or when `patience` is over.
  bool finish(Instant patience);

 private:
  struct Blow {
    std::uint16_t server;
    unsigned one_in;
    std::function<void(Actor& actor)> how;
  };

  void run();
  void tick();
  void strike_later(Blow blow);
  void strike(const Blow& blow);

  const int epoll_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Actor>> actors_;
  Actor::Watch watch_;
  std::atomic<bool> finishing_{false};
  std::atomic<bool> finished_{false};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<Blow> blows_;
  std::thread thread_;
};

}  // namespace lockd::histories
