// StressLoop: a thread that executes requests of several sessions, as a server's event loop does.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "base/mutex.h"
#include "engine/testing/guarded_keys.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {

class StressLoop final : public Listener {
 public:
  StressLoop(Engine& engine, GuardedKeys& keys, unsigned seed)
      : engine_(engine), keys_(keys), random_(seed), first_session_(seed * 1'000'000 + 1) {}

  // Checks that every wait ends once.
  void run(int rounds);

 private:
  struct Client {
    Session session;
    enum { idle, waiting, holding } state = idle;
    WaitId wait;
    std::uint64_t request = 0;
    std::uint64_t secret = 0;
    std::size_t key = 0;
    Kind kind = Kind::lock;
    Fence fence = 0;
  };

  void on_wait_done(const WaitResult& result) noexcept override;
  std::uint64_t settled_count();

  void apply_results(std::vector<Client>& clients);
  void step(Batch& batch, Client& client);
  void acquire(Batch& batch, Client& client);
  void hold(Client& client, Fence fence);
  void release(Batch& batch, Client& client);
  void disconnect(Batch& batch, Client& client);

  Engine& engine_;
  GuardedKeys& keys_;
  std::mt19937_64 random_;
  const SessionId first_session_;
  SessionId next_session_ = 0;
  std::uint64_t queued_ = 0;

  Mutex mutex_;
  std::vector<WaitResult> inbox_ GUARDED_BY(mutex_);
  std::uint64_t settled_count_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lockd
