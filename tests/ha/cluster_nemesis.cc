#include "ha/cluster_nemesis.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace lockd::histories {
namespace {

using LinkFault = ChaosProxy::LinkFault;
using std::chrono::milliseconds;

constexpr std::uint64_t kTinyQuota = 64 * 1024;  // less than any database has

}  // namespace

ClusterNemesis::ClusterNemesis(Recording& recording, Victims victims, std::uint64_t seed)
    : recording_(recording), victims_(victims), random_(seed) {
  add_blows_to_servers();
  add_blows_to_etcd();
  add_blows_to_links();
  add_blows_to_peer_links();
  add_blows_to_clients();
}

void ClusterNemesis::strike() {
  if (next_ % blows_.size() == 0) std::shuffle(blows_.begin(), blows_.end(), random_);
  const Blow& blow = blows_[next_++ % blows_.size()];
  const std::uint32_t epoch = victims_.cluster->last_reign().epoch;
  const Instant begun = now();
  blow.strike();
  recording_.note_fault(blow.name, victims_.cluster->settings().number, epoch, begun, now());
  victims_.cluster->await_service();
  pause_ms(300, 1500);
}

void ClusterNemesis::heal() {
  pause_ms(2500, 2500);  // until the last stall in the network is over
  victims_.cluster->await_service();
  recording_.note_heal();
}

void ClusterNemesis::add_blows_to_servers() {
  ClusterUnderTest& cluster = *victims_.cluster;
  const auto kill_leader = [this, &cluster] {
    const Reign reign = cluster.last_reign();
    cluster.kill_node(reign.node);
    if (random_() % 2 == 0)
      cluster.await_reign_after(reign.epoch);  // else it may lead again itself
    cluster.start_node(reign.node);
    cluster.await_reign_after(reign.epoch);
  };
  for (int i = 0; i < 3; ++i) blows_.push_back({"kill_leader", kill_leader});
  for (int i = 0; i < 2; ++i) blows_.push_back({"stop_leader", [this] { stop_leader(); }});
  for (int i = 0; i < 2; ++i) {
    blows_.push_back({"hand_over", [&cluster] {
                        const Reign reign = cluster.last_reign();
                        cluster.stop_node(reign.node);
                        cluster.await_reign_after(reign.epoch);
                        cluster.start_node(reign.node);
                      }});
  }
  blows_.push_back({"rolling_upgrade", [this] { replace_all(); }});
  blows_.push_back({"stop_leader_briefly", [this, &cluster] {
                      const std::size_t node = leader();
                      cluster.freeze(node);
                      pause_ms(50, 400);
                      cluster.thaw(node);
                    }});
  for (const bool in_good_order : {false, true}) {
    for (int i = 0; i < 2; ++i) {
      blows_.push_back(
          {in_good_order ? "restart_standby" : "kill_standby", [this, in_good_order, &cluster] {
             const std::size_t node = standby();
             in_good_order ? cluster.stop_node(node) : cluster.kill_node(node);
             pause_ms(10, 500);
             cluster.start_node(node);
           }});
    }
  }
  blows_.push_back({"stop_standby", [this, &cluster] {
                      const std::size_t node = standby();
                      cluster.freeze(node);
                      pause_ms(200, 2000);
                      cluster.thaw(node);
                    }});
  blows_.push_back({"compaction_ahead_of_standby", [this] { outrun_standby(); }});
}

// It goes on when another has led for a while, with what was sent to it meanwhile in its sockets.
void ClusterNemesis::stop_leader() {
  ClusterUnderTest& cluster = *victims_.cluster;
  const Reign reign = cluster.last_reign();
  cluster.freeze(reign.node);
  cluster.await_reign_after(reign.epoch);
  pause_ms(100, 1500);
  cluster.is_deposed(reign.node);
  cluster.thaw(reign.node);
}

// What a standby has not seen yet is not there any more when it goes on.
void ClusterNemesis::outrun_standby() {
  ClusterUnderTest& cluster = *victims_.cluster;
  const std::size_t node = standby();
  cluster.freeze(node);
  break_links(node, LinkFault::cut, 1, 0);  // else what members have buffered would still reach it
  pause_ms(1000, 2000);
  victims_.etcd->control("compaction " + std::to_string(victims_.etcd->revision()));
  cluster.thaw(node);
}

// Each is replaced when the one before it is back, whoever leads meanwhile.
void ClusterNemesis::replace_all() {
  ClusterUnderTest& cluster = *victims_.cluster;
  for (std::size_t node = 0; node < ClusterUnderTest::kNodes; ++node) {
    cluster.stop_node(node);
    cluster.start_node(node);
    pause_ms(500, 1000);
    cluster.await_service();
  }
}

void ClusterNemesis::add_blows_to_etcd() {
  ha_test::EtcdCluster& etcd = *victims_.etcd;
  blows_.push_back({"kill_etcd", [this, &etcd] {
                      const std::size_t victim = member();
                      etcd.kill(victim);
                      pause_ms(500, 2000);
                      etcd.start(victim);
                      etcd.await_healthy(victim);
                    }});
  blows_.push_back({"stop_etcd", [this, &etcd] {
                      const std::size_t victim = member();
                      etcd.stop(victim);
                      pause_ms(500, 3000);
                      etcd.go_on(victim);
                    }});
  blows_.push_back({"kill_etcd_majority", [this] { lose_majority(true); }});
  blows_.push_back({"stop_etcd_majority", [this] { lose_majority(false); }});
  blows_.push_back({"slow_etcd", [this] { slow_down_etcd(); }});
  blows_.push_back({"full_etcd", [this] { fill_etcd(); }});
}

// What is behind an outage is told late. When everybody is served again it is over.
void ClusterNemesis::outage_since(Instant begun) {
  victims_.cluster->await_service();
  recording_.note_fault(kOutage, victims_.cluster->settings().number,
                        victims_.cluster->last_reign().epoch, begun, now());
}

void ClusterNemesis::lose_majority(bool by_death) {
  ha_test::EtcdCluster& etcd = *victims_.etcd;
  const std::size_t left = member();
  const Instant begun = now();
  const auto all_but_one = [&](const std::function<void(std::size_t)>& act) {
    for (std::size_t i = 0; i < etcd.size(); ++i) {
      if (i != left) act(i);
    }
  };
  all_but_one([&](std::size_t i) { by_death ? etcd.kill(i) : etcd.stop(i); });
  pause_ms(100, 3000);
  all_but_one([&](std::size_t i) { by_death ? etcd.start(i) : etcd.go_on(i); });
  all_but_one([&](std::size_t i) { etcd.await_healthy(i); });
  outage_since(begun);
}

// All members stand still most of the time, and their clients' messages come late besides.
void ClusterNemesis::slow_down_etcd() {
  ha_test::EtcdCluster& etcd = *victims_.etcd;
  const Instant begun = now();
  for (std::size_t node = 0; node < ClusterUnderTest::kNodes; ++node) {
    break_links(node, LinkFault::delay, 1, 2 * kSecond);
  }
  for (int i = 0; i < 20; ++i) {
    for (std::size_t member = 0; member < etcd.size(); ++member) etcd.stop(member);
    pause_ms(60, 60);
    for (std::size_t member = 0; member < etcd.size(); ++member) etcd.go_on(member);
    pause_ms(40, 40);
  }
  outage_since(begun);
}

// A member with a quota below what it has raises the alarm for all, at the next write; from then on
// nothing can be written until somebody has made room and says so.
void ClusterNemesis::fill_etcd() {
  ha_test::EtcdCluster& etcd = *victims_.etcd;
  const std::size_t victim = member();
  const Instant begun = now();
  etcd.kill(victim);
  etcd.start(victim, kTinyQuota);
  etcd.await_healthy(victim);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (etcd.control("alarm list").find("NOSPACE") == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("etcd is not full");
  }
  pause_ms(500, 1500);
  etcd.kill(victim);
  etcd.start(victim);
  etcd.await_healthy(victim);
  etcd.control("compaction " + std::to_string(etcd.revision()));
  etcd.control("defrag");
  etcd.control("alarm disarm");
  outage_since(begun);
}

void ClusterNemesis::break_links(std::size_t node, LinkFault fault, unsigned one_in,
                                 Instant lasting) {
  for (std::size_t member = 0; member < victims_.etcd->size(); ++member) {
    victims_.proxy->inject(fault, victims_.cluster->link(node, member), one_in, lasting);
  }
}

void ClusterNemesis::add_blows_to_links() {
  for (const bool silently : {false, true}) {
    for (int i = 0; i < 2; ++i) {
      blows_.push_back({silently ? "freeze_leaders_links" : "part_leader_from_etcd",
                        [this, silently] { part_leader_from_etcd(silently); }});
    }
  }
  blows_.push_back({"cut_leaders_links", [this] { break_links(leader(), LinkFault::cut, 1, 0); }});
  blows_.push_back({"part_standby_from_etcd", [this] {
                      const std::size_t node = standby();
                      victims_.cluster->cut_off(node, true);
                      break_links(node, LinkFault::cut, 1, 0);
                      pause_ms(500, 2500);
                      victims_.cluster->cut_off(node, false);
                    }});
  for (const LinkFault fault : {LinkFault::half_close, LinkFault::truncate, LinkFault::split}) {
    blows_.push_back({"tear_links_to_etcd", [this, fault] {
                        for (std::size_t node = 0; node < ClusterUnderTest::kNodes; ++node) {
                          break_links(node, fault, 2, kSecond);
                        }
                        pause_ms(200, 1000);
                      }});
  }
}

// Its clients still reach it. Connections are reset and refused, or nothing comes through them.
void ClusterNemesis::part_leader_from_etcd(bool silently) {
  ClusterUnderTest& cluster = *victims_.cluster;
  const Reign reign = cluster.last_reign();
  cluster.cut_off(reign.node, true);
  if (silently) {
    stall_links(reign.node, 60 * kSecond);  // or less: until another leads
  } else {
    break_links(reign.node, LinkFault::cut, 1, 0);
  }
  cluster.await_reign_after(reign.epoch);
  pause_ms(100, 1500);
  cluster.cut_off(reign.node, false);
  if (silently) stall_links(reign.node, 0);
}

void ClusterNemesis::stall_links(std::size_t node, Instant lasting) {
  break_links(node, LinkFault::stall_up, 1, lasting);
  break_links(node, LinkFault::stall_down, 1, lasting);
}

// Those by which servers forward. When they break, followers close the connections of the clients
// that they have passed on; when they are away for long, clients get error_not_leader.
void ClusterNemesis::add_blows_to_peer_links() {
  ClusterUnderTest& cluster = *victims_.cluster;
  for (int i = 0; i < 2; ++i) {
    blows_.push_back(
        {"cut_links_between_servers", [this] { break_peer_links(LinkFault::cut, 0); }});
    blows_.push_back({"part_servers", [this, &cluster] {
                        cluster.part(true);
                        break_peer_links(LinkFault::cut, 0);
                        pause_ms(200, 4000);
                        cluster.part(false);
                      }});
    blows_.push_back({"freeze_links_between_servers", [this] {
                        const Instant lasting = between(kSecond / 5, 2 * kSecond);
                        break_peer_links(LinkFault::stall_up, lasting);
                        break_peer_links(LinkFault::stall_down, lasting);
                      }});
  }
  for (const LinkFault fault :
       {LinkFault::half_close, LinkFault::truncate, LinkFault::split, LinkFault::delay}) {
    blows_.push_back(
        {"tear_links_between_servers", [this, fault] { break_peer_links(fault, kSecond); }});
  }
  blows_.push_back({"cut_links_and_kill_leader", [this, &cluster] {
                      const Reign reign = cluster.last_reign();
                      break_peer_links(LinkFault::cut, 0);
                      pause_ms(0, 200);
                      cluster.kill_node(reign.node);
                      cluster.await_reign_after(reign.epoch);
                      cluster.start_node(reign.node);
                    }});
}

void ClusterNemesis::break_peer_links(LinkFault fault, Instant lasting) {
  for (std::size_t node = 0; node < ClusterUnderTest::kNodes; ++node) {
    victims_.proxy->inject(fault, victims_.cluster->peer_links(node), 1, lasting);
  }
}

void ClusterNemesis::add_blows_to_clients() {
  const std::uint16_t number = victims_.cluster->settings().number;
  for (std::size_t i = 0; i < ChaosProxy::kFaults; ++i) {
    blows_.push_back({ChaosProxy::name_of(static_cast<LinkFault>(i)), [this, number, i] {
                        const Instant lasting = between(kSecond / 10, 2 * kSecond);
                        victims_.proxy->inject(static_cast<LinkFault>(i), number, 2, lasting);
                      }});
  }
  blows_.push_back({"client_pause", [this, number] {
                      victims_.clients->pause(number, 3, between(kSecond / 10, 2 * kSecond));
                    }});
  blows_.push_back({"client_kill", [this, number] { victims_.clients->kill(number, 4); }});
}

// The logs are read meanwhile: when somebody came to lead should be known to the moment.
void ClusterNemesis::pause_ms(std::int64_t least, std::int64_t most) {
  const auto deadline = std::chrono::steady_clock::now() + milliseconds(between(least, most));
  while (std::chrono::steady_clock::now() < deadline) {
    victims_.cluster->last_reign();
    std::this_thread::sleep_for(milliseconds(5));
  }
}

std::int64_t ClusterNemesis::between(std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
}

}  // namespace lockd::histories
