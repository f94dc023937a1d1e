// Three nodes, the model of etcd, clients that act at random, and faults: processes that are
// killed, stopped and go on, asked to hand over, to one in particular too; an etcd that is away,
// slow, or full. Everything
// that anybody is told is checked as it is told, everything that is put into the chain as it is
// put, and every follower against the chain. The same seed gives the same history.
//
// Besides what ChainWitness and BeliefChecker see:
//
//   answers-lead      who answers anything leads at that moment, and what it says is in the chain
//   replay-equals     a node that has followed to the head holds what the chain says
//   somebody-leads    without faults, a leader is there before long
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/chance.h"
#include "ha/belief_checker.h"
#include "ha/chain_witness.h"
#include "ha/node.h"
#include "lockd/batch.h"
#include "replication/testing/model_etcd.h"

namespace lockd::ha_test {

struct WorldOptions {
  std::uint64_t seed = 1;
  std::uint64_t operations = 100'000;
  Duration detect = std::chrono::milliseconds(300);
  // Longer than `detect`: each node has at each start a detect of its own between the two, and
  // another limit of keys, as in a change of settings that never ends.
  Duration detect_max{};
  etcd::ModelFaults faults{};
  bool trouble = true;  // of processes, and of etcd as a whole
  // Plants a fault in a node.
  std::function<Tamper(std::uint64_t number)> tamper{};
};

struct WorldStats {
  std::uint64_t operations = 0;  // asked of any node
  std::uint64_t told = 0;
  std::uint64_t settled = 0;  // waits that ended in a grant
  std::uint64_t not_leader = 0;
  std::uint64_t kills = 0;
  std::uint64_t stops = 0;
  std::uint64_t hand_overs = 0;
  std::uint64_t transfers = 0;  // hand-overs to one that is named
  std::uint64_t outages = 0;
  std::uint64_t compared = 0;  // followers with the chain
  std::uint64_t leaders = 0;
  std::uint64_t batches = 0;
  std::uint64_t events = 0;
  std::uint64_t terms = 0;
  std::uint64_t snapshots = 0;
  std::uint64_t resends = 0;
  std::uint64_t resolved = 0;
  std::uint64_t lapses = 0;
  std::uint64_t repeated = 0;
  std::uint64_t compactions = 0;

  WorldStats& operator+=(const WorldStats& more);
  friend std::ostream& operator<<(std::ostream& out, const WorldStats& stats);
};

class ClusterWorld final : private Listener {
 public:
  explicit ClusterWorld(const WorldOptions& options);
  ~ClusterWorld();

  // Throws Violation.
  WorldStats run();

 private:
  static constexpr std::size_t kNodes = 3;

  struct Wait {
    Node* node;
    std::uint64_t life;
    crash::HoldKey key;  // the fence is yet to come
    std::string owner;
    SessionId session;
    std::uint32_t limit;
    std::uint64_t asked;
    WaitId id;
  };

  void step();
  Node::Settings settings();
  void make_trouble();
  void hand_over(Node& node);
  void act(Node& node);
  void acquire(Node& node, Batch& batch);
  static bool is_alive(const Node& node, SessionId session);
  void renew(Node& node, Batch& batch);
  void release(Node& node, Batch& batch);
  void read(Node& node, Batch& batch);
  void end_session(Node& node, Batch& batch);
  void cancel(Node& node, Batch& batch);
  void answer(Node& node, Outcome outcome, std::function<void()> tell);
  void on_wait_done(const WaitResult& result) noexcept override;
  void check_answerer(const Node& node, Position rests_on) const;
  void compare_with_chain(Node& node);
  void come_to_rest();
  Node& node_to_ask();
  Time now() const { return etcd_.now(); }

  const WorldOptions options_;
  Chance chance_;
  etcd::ModelEtcd etcd_;
  const EtcdKeys keys_;
  BeliefChecker beliefs_;
  ChainWitness witness_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::uint64_t, Wait> waits_;
  std::uint64_t last_wait_ = 0;
  std::vector<std::function<void()>> answers_;  // of the open batch
  std::string violation_;                       // found where nothing may be thrown
  Time next_trouble_{};
  WorldStats stats_;
};

}  // namespace lockd::ha_test
