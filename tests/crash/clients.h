// Clients that act at random: names and sessions, locks and semaphores, one key or several at once,
// waits, renewals, releases, connections that break, and an admin who ends their holds and resizes
// semaphores. All they learn is in the ledger.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/testing/chance.h"
#include "crash/ledger.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd::crash {

class Clients final : private Listener {
 public:
  // Both outlive it. It outlives the engine, which settles what waits when it closes.
  Clients(Chance& chance, Ledger& ledger);

  // One batch, from its first request to its commit.
  void act(Engine& engine, Position durable);

 private:
  struct Wait {
    WaitId id;
    std::vector<HoldKey> keys;  // the fence is yet to come
    std::string owner;
    SessionId session;
  };

  Session new_session();
  void act_once(Batch& batch, Position durable);
  void acquire(Batch& batch);
  void acquire_all(Batch& batch);
  void renew(Batch& batch, Position durable);
  void release(Batch& batch, Position durable);
  void release_all(Batch& batch, const HoldKey& picked, const std::string& owner, Position durable);
  void cancel(Batch& batch);
  void revoke(Batch& batch, Position durable);
  void resize(Batch& batch);
  void end_session(Batch& batch);
  bool waits(const std::string& owner, const HoldKey& key) const;
  bool is_alive(SessionId session) const;
  void on_wait_done(const WaitResult& result) noexcept override;

  Chance& chance_;
  Ledger& ledger_;
  std::vector<Session> sessions_;
  SessionId last_session_ = 0;
  std::map<std::uint64_t, Wait> waits_;
  std::uint64_t last_wait_ = 0;
};

}  // namespace lockd::crash
