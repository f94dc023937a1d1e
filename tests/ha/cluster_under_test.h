// A cluster of servers that a history is recorded of: lockd-ha, each in a process of its own, all
// on one etcd. They reach that, and each other, through a proxy.
//
// For the thread that starts and ends them, but where a ServerUnderTest is for everybody.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ha/etcd_cluster.h"
#include "histories/chaos_proxy.h"
#include "histories/recording.h"
#include "histories/server_under_test.h"

namespace lockd::histories {

// A time during which one node led; seen in its log, so never before it began.
struct Reign {
  std::uint32_t epoch;
  std::size_t node;
  Instant seen;
};

class ClusterUnderTest : public ServerUnderTest {
 public:
  static constexpr std::size_t kNodes = 3;

  // Both outlive it; the proxy has not been started yet. `forwards`: they know a secret in common,
  // and servers that follow pass on what they are asked.
  ClusterUnderTest(Settings settings, const ha_test::EtcdCluster& etcd, ChaosProxy& proxy,
                   bool forwards);

  // All of them, and waits until one leads. Throws std::runtime_error if none does.
  void start() override;
  void stop() override;

  void start_node(std::size_t node);
  void kill_node(std::size_t node);
  bool is_running(std::size_t node) const { return place(node).line_port != 0; }
  // It is asked to stop, and does so in good order; else this throws std::runtime_error.
  void stop_node(std::size_t node);
  void freeze(std::size_t node);  // all of it stands still on return
  void thaw(std::size_t node);
  // As a whole virtual machine is paused: it stands still, and so does its clock. Only where there
  // is a shim, and a directory of the settings for what it is told.
  void pause(std::size_t node);
  void resume(std::size_t node);
  static bool can_pause();
  // Another leads by now: what this one's clients hold lives on when it finds out.
  void is_deposed(std::size_t node);

  // Its links to that member of etcd, for whoever breaks them; and whether new ones come about.
  std::uint16_t link(std::size_t node, std::size_t member) const;
  void cut_off(std::size_t node, bool off) { cut_off_[node] = off; }
  // Likewise the links by which others forward to that node, and those of all.
  std::uint16_t peer_links(std::size_t node) const;
  void part(bool parted) { parted_ = parted; }

  std::size_t leader() override { return last_reign().node; }
  // Says of each operation of this cluster's which leader answered it, and whether it was passed
  // on, as the logs tell. In the order in which each client asked.
  void attribute(std::vector<Operation>& operations);

  // What the logs tell until now, in the order of epochs.
  std::vector<Reign> reigns();
  Reign last_reign();
  // Waits for a later one than that.
  Reign await_reign_after(std::uint32_t epoch);
  // Waits until somebody answers that it leads.
  void await_service();
  std::string log(std::size_t node);

 private:
  // From when on a node served what it was asked: it led, or was connected to the leader.
  struct Service {
    Instant since;
    std::size_t leader;
    std::uint32_t epoch = 0;  // 0: not known yet
  };
  struct Node {
    std::uint16_t line_port = 0;
    std::uint16_t http_port = 0;
    std::string address;            // where others forward to
    std::vector<std::string> etcd;  // as it sees the members
    std::unique_ptr<ServerProcess> process;
    LiveFaults* faults = nullptr;
    Instant paused = 0;
    std::string log;          // of all its processes
    std::size_t read = 0;     // of the log of this one
    std::uint32_t epoch = 0;  // the last in which it led
    std::vector<Service> services;
  };

  std::string secret_file() const { return settings().directory + "/cluster-secret"; }
  std::vector<std::string> flags(const Node& node) const;
  std::vector<std::string> environment(std::size_t node);
  void read_log(std::size_t node);
  void read_line(std::size_t node, std::string_view line);
  void find_epochs();
  void attribute(Operation& operation, Instant since) const;
  void end(std::size_t node);
  bool says_it_leads(std::size_t node);
  [[noreturn]] void fail(const std::string& what);

  const bool forwards_;
  const Instant wall_clock_;  // what it shows at the beginning of ours
  std::array<std::atomic<bool>, kNodes> cut_off_{};
  std::atomic<bool> parted_{false};
  std::mutex
      logs_mutex_;  // of what follows, but for the processes, which only their thread touches
  std::array<Node, kNodes> servers_;
  std::vector<Reign> reigns_;
};

}  // namespace lockd::histories
