// Breaks a cluster, one thing after the other: its leader, its standbys, etcd, the network between
// all of them, and clients.
//
// For one thread, which must live as long as the processes do.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string_view>
#include <vector>

#include "ha/cluster_under_test.h"
#include "ha/etcd_cluster.h"
#include "histories/chaos_proxy.h"
#include "histories/client_pool.h"
#include "histories/recording.h"

namespace lockd::histories {

class ClusterNemesis {
 public:
  struct Victims {
    ClusterUnderTest* cluster;
    ha_test::EtcdCluster* etcd;
    ChaosProxy* proxy;
    ClientPool* clients;
  };

  ClusterNemesis(Recording& recording, Victims victims, std::uint64_t seed);

  // Something that was not broken for longest, repairs it again, and waits until somebody serves.
  // Throws std::runtime_error if nobody comes to.
  void strike();
  // Waits until the last of it is over, and says so in the history.
  void heal();

 private:
  // What it is called, and how it is done; not all of them take the leadership away.
  struct Blow {
    std::string_view name;
    std::function<void()> strike;
  };

  void add_blows_to_servers();
  void add_blows_to_etcd();
  void add_blows_to_links();
  void add_blows_to_peer_links();
  void add_blows_to_clients();

  void stop_leader();
  void outrun_standby();
  void replace_all();
  void lose_majority(bool by_death);
  void slow_down_etcd();
  void fill_etcd();
  void part_leader_from_etcd(bool silently);
  void stall_links(std::size_t node, Instant lasting);
  void break_links(std::size_t node, ChaosProxy::LinkFault fault, unsigned one_in, Instant lasting);
  void break_peer_links(ChaosProxy::LinkFault fault, Instant lasting);
  void outage_since(Instant begun);

  std::size_t leader() { return victims_.cluster->leader(); }
  std::size_t standby() { return (leader() + 1 + random_() % 2) % ClusterUnderTest::kNodes; }
  std::size_t member() { return random_() % victims_.etcd->size(); }
  void pause_ms(std::int64_t least, std::int64_t most);
  std::int64_t between(std::int64_t least, std::int64_t most);

  Recording& recording_;
  const Victims victims_;
  std::mt19937_64 random_;
  std::vector<Blow> blows_;
  std::size_t next_ = 0;
};

}  // namespace lockd::histories
