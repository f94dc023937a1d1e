// Records a history of a cluster under load, while everything is broken that can be: three members
// of etcd, three servers that forward, clients that go to the leader, and clients that stay with
// any of the servers.
//
//   record_cluster FOLDER [--faults N] [--auto-release 0|1] [--seed N]
//
// FOLDER/history.jsonl is the history, with each failover that came about as a line of its own; the
// servers' logs are beside it.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ha/cluster_nemesis.h"
#include "ha/cluster_under_test.h"
#include "ha/etcd_cluster.h"
#include "histories/actor.h"
#include "histories/chaos_proxy.h"
#include "histories/client_pool.h"
#include "histories/history_file.h"
#include "histories/ladder.h"
#include "histories/recorder.h"
#include "histories/recording.h"

namespace {

using namespace lockd;
using namespace lockd::histories;
using namespace std::chrono_literals;

struct Order {
  std::string folder;
  std::uint64_t faults = 50;
  std::uint64_t auto_release = 0;  // or 1
  std::uint64_t seed = 0;
};

// That a lease has ended is in the chain when whatever was asked so much later was acknowledged: no
// sweep is as late as this.
constexpr Instant kSweepMax = 2 * kSecond;

class Run {
 public:
  explicit Run(const Order& order)
      : order_(order),
        random_(order.seed),
        recording_(order.seed),
        etcd_(3),
        proxy_(random_()),
        cluster_(settings(), etcd_, proxy_, true),
        clients_(random_()) {}

  void play() {
    add_keys();
    for (const bool http : {false, true}) add_actors(http);
    proxy_.start();
    cluster_.start();
    clients_.start();
    ladder_ = std::make_unique<Ladder>(recording_, cluster_, ladder_keys_);
    try {
      be_broken();
      come_to_rest();
    } catch (...) {
      // No matter of a history; but what led to it is.
      dismiss(0);
      write();
      throw;
    }
    write();
  }

 private:
  ServerUnderTest::Settings settings() {
    const std::string name = order_.auto_release != 0 ? "releasing" : "keeping";
    return {.name = name,
            .number = recording_.add_server(name, order_.auto_release != 0),
            .auto_release = order_.auto_release != 0,
            .directory = order_.folder};
  }

  void add_keys() {
    const auto add = [&](const std::string& name, int i) {
      return recording_.add_key(name + "-" + std::to_string(i));
    };
    for (int i = 0; i < 24; ++i) keys_.shared.push_back({.key = add("lock", i)});
    for (int i = 0; i < 6; ++i) {
      keys_.shared.push_back({.key = add("sem", i),
                              .kind = Kind::semaphore,
                              .limit = 2 + static_cast<std::uint32_t>(i % 3)});
    }
    keys_.wanted.push_back({.key = add("wanted", 0)});
    keys_.wanted.push_back({.key = add("wanted-sem", 0), .kind = Kind::semaphore, .limit = 2});
    for (int i = 0; i < 4; ++i) {
      auto& group = keys_.groups.emplace_back();
      for (int seat = 0; seat < 3; ++seat) group.push_back({.key = add("seat", 3 * i + seat)});
      group.push_back({.key = add("seat-sem", i), .kind = Kind::semaphore, .limit = 2});
    }
    for (int i = 0; i < 8; ++i) ladder_keys_.push_back(add("ladder", i));
    for (int i = 0; i < kActors; ++i) own_.push_back({.key = add("own", i)});
  }

  // Of two, one comes through the proxy, and one stays with a server whether it leads or not; of
  // three, one over HTTP, and one has leases that outlast a failover; of four, two have little
  // patience.
  void add_actors(bool http) {
    std::vector<std::uint16_t> ports;
    for (std::size_t node = 0; node < ClusterUnderTest::kNodes; ++node) {
      ports.push_back(proxy_.listen(cluster_.settings().number, [this, node, http] {
        const ServerUnderTest::Place place = cluster_.place(node);
        return ChaosProxy::Upstream{http ? place.http_port : place.line_port, place.life};
      }));
    }
    for (int i = 0; i < (http ? kActors / 3 : kActors - kActors / 3); ++i) {
      Actor::Role role{&cluster_, http};
      if (i % 2 == 1) role.proxy_ports = ports;
      if (i % 4 >= 2) role.patience = 2 * kSecond;
      role.stays = i % 8 >= 4;
      const PlannedKey own = own_[next_own_++];
      clients_.add(std::make_unique<Actor>(
          recording_, scribe_, proxy_, role,
          Plan(recording_, keys_, {.named = http, .own = own, .lease_scale = i % 3 == 0 ? 5 : 1},
               random_())));
    }
  }

  void be_broken() {
    ClusterNemesis nemesis(recording_, {&cluster_, &etcd_, &proxy_, &clients_}, random_());
    const Instant begun = now();
    while (recording_.faults() < order_.faults) nemesis.strike();
    nemesis.heal();
    std::this_thread::sleep_for(1s);  // what works now must go on working
    std::printf("%.1f s under faults, %zu failovers\n",
                static_cast<double>(now() - begun) / kSecond, cluster_.reigns().size() - 1);
  }

  void come_to_rest() {
    dismiss(60 * kSecond);
    std::vector<std::vector<PlannedKey>> all = keys_.groups;
    all.insert(all.end(), {keys_.shared, keys_.wanted, own_});
    for (const std::vector<PlannedKey>& keys : all) {
      for (const PlannedKey& key : keys) take(key);
    }
    cluster_.stop();
  }

  void dismiss(Instant patience) {
    if (std::exchange(dismissed_, true)) return;
    ladder_.reset();
    if (!clients_.finish(patience)) std::printf("some clients did not come to rest\n");
  }

  // Once the faults are over, everything can be had, of any server. Should the leader change all
  // the same, it is asked for again.
  void take(const PlannedKey& key) {
    const Instant deadline = now() + 60 * kSecond;
    while (now() < deadline) {
      cluster_.await_service();
      const Result result = ask_for(key);
      if (result != Result::info && result != Result::not_leader) return;
    }
    throw std::runtime_error("there is no answer about " + recording_.key(key.key));
  }

  Result ask_for(const PlannedKey& key) {
    const std::size_t node = key.key % ClusterUnderTest::kNodes;
    Operation operation{.ttl = kSecond,
                        .timeout = 30 * kSecond,
                        .conn = recording_.new_conn(),
                        .proc = recording_.new_proc(),
                        .key = key.key,
                        .limit = key.limit,
                        .server = cluster_.settings().number,
                        .node = static_cast<std::uint16_t>(node),
                        .kind = key.kind};
    LineClient client(cluster_.place(node).line_port, 0, false);
    ask_by_line(client, recording_, operation);
    scribe_.note(operation);
    note_closed(operation, client);
    return operation.result;
  }

  void note_closed(const Operation& last, LineClient& client) {
    Operation end{.call = now(), .conn = last.conn, .proc = last.proc, .server = last.server};
    client.close();
    end.ret = now();
    end.function = Function::disconnect;
    scribe_.note(end);
  }

  // A failover begins when its predecessor is last known to have kept what it did.
  void note_failovers(const History& history) {
    std::map<std::uint32_t, Instant> acknowledged;  // the last call, by epoch
    for (const Operation& operation : history.operations) {
      if (operation.function > Function::release || operation.result != Result::ok) continue;
      Instant& last = acknowledged[operation.life];
      last = std::max(last, operation.call);
    }
    const std::vector<Reign> reigns = cluster_.reigns();
    for (std::size_t i = 1; i < reigns.size(); ++i) {
      const Reign& before = reigns[i - 1];
      const Reign& reign = reigns[i];
      const Instant kept = acknowledged[before.epoch] - kSweepMax;
      const Instant begun = std::min(std::max(kept, before.seen), reign.seen);
      recording_.note_fault(kFailover, cluster_.settings().number, reign.epoch, begun,
                            std::max(begun, reign.seen));
    }
  }

  void write() {
    History& history = recording_.finish();
    cluster_.attribute(history.operations);
    note_failovers(history);
    write_history(history, order_.folder + "/history.jsonl");
    for (std::size_t node = 0; node < ClusterUnderTest::kNodes; ++node) {
      std::ofstream(order_.folder + "/node-" + std::to_string(node) + ".log") << cluster_.log(node);
    }
  }

  static constexpr int kActors = 48;

  const Order order_;
  std::mt19937_64 random_;
  Recording recording_;
  ha_test::EtcdCluster etcd_;
  ChaosProxy proxy_;
  ClusterUnderTest cluster_;
  ClientPool clients_;
  Recording::Scribe& scribe_ = recording_.add_scribe();
  KeyRing keys_;
  std::vector<PlannedKey> own_;
  std::size_t next_own_ = 0;
  std::vector<std::uint32_t> ladder_keys_;
  std::unique_ptr<Ladder> ladder_;
  bool dismissed_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  Order order;
  return record(argc, argv, order.folder, order.seed,
                {{"--faults", &order.faults}, {"--auto-release", &order.auto_release}},
                [&] { Run(order).play(); });
}
