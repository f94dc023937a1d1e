// A server's process in small: an engine on a replicated journal, over a connection to the model of
// etcd. Its threads are the test. It may be stopped and go on, die, and be started again.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "crash/witnessed_journal.h"
#include "lockd/clock.h"
#include "lockd/engine.h"
#include "replication/replicated_journal.h"
#include "replication/testing/model_etcd.h"

namespace lockd::ha_test {

// The world's time, and some: no two nodes agree on what time it is.
class NodeClock final : public Clock {
 public:
  NodeClock(const etcd::ModelEtcd& etcd, Duration offset) : etcd_(etcd), offset_(offset) {}

  Time now() const noexcept override { return etcd_.now() + offset_; }
  Time in_world(Time here) const { return here - offset_; }

 private:
  const etcd::ModelEtcd& etcd_;
  const Duration offset_;
};

// Stands between a node and etcd, to plant a fault. Owns the connection.
using Tamper = std::function<std::unique_ptr<etcd::Client>(std::unique_ptr<etcd::Client>)>;

class Node {
 public:
  static constexpr std::size_t kSessions = 4;

  // That all nodes should share, and need not.
  struct Settings {
    Duration detect{};
    std::uint64_t keys_max = 1024;
  };

  struct Life {
    Life(etcd::ModelEtcd& etcd, NodeClock& clock, const ReplicatedJournalOptions& options,
         std::uint64_t keys_max, std::uint64_t hash_seed, const Tamper& tamper);

    etcd::ModelEtcd::Connection* connection;
    std::unique_ptr<etcd::Client> client;
    ReplicatedJournal journal;
    crash::WitnessedJournal witnessed;
    Engine engine;
    std::array<Session, kSessions> sessions;

    // What clients are answered when it is durable, in the order of asking.
    struct Reply {
      Position rests_on;
      std::function<void()> tell;
    };
    std::vector<Reply> replies;
  };

  Node(std::uint64_t number, etcd::ModelEtcd& etcd, Tamper tamper);

  void start(const Settings& settings);
  void kill();
  bool is_up() const { return life != nullptr && etcd.now() >= stopped_until; }

  // What its threads do in a moment: hear, take a turn, end what is due, answer.
  void run();

  const std::uint64_t number;
  etcd::ModelEtcd& etcd;
  NodeClock clock;
  Time stopped_until{};  // or started again
  std::uint64_t lives = 0;
  std::unique_ptr<Life> life;
  std::uint64_t terms = 0;  // of lives that are over, as the rest
  std::uint64_t snapshots = 0;
  std::uint64_t resends = 0;
  std::uint64_t resolved = 0;
  std::uint64_t lapses = 0;
  std::uint64_t repeated = 0;
  std::uint64_t compactions = 0;

 private:
  const Tamper tamper_;
};

}  // namespace lockd::ha_test
