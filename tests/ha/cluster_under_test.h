// A cluster of servers that a history is recorded of: dflockd-ha, each in a process of its own, all
// on one etcd, which they reach through a proxy.
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
#include <utility>
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

  // Both outlive it; the proxy has not been started yet.
  ClusterUnderTest(Settings settings, const ha_test::EtcdCluster& etcd, ChaosProxy& proxy);

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

  std::size_t leader() override { return last_reign().node; }
  std::size_t node_at(const std::string& address) const override;
  std::uint32_t life_told(std::size_t node, std::uint32_t life) override;

  // What the logs tell until now, in the order of epochs.
  std::vector<Reign> reigns();
  Reign last_reign();
  // Waits for a later one than that.
  Reign await_reign_after(std::uint32_t epoch);
  // Waits until somebody answers that it leads.
  void await_service();
  std::string log(std::size_t node);

 private:
  struct Node {
    std::uint16_t line_port = 0;
    std::uint16_t http_port = 0;
    std::vector<std::string> etcd;  // as it sees the members
    std::unique_ptr<ServerProcess> process;
    LiveFaults* faults = nullptr;
    Instant paused = 0;
    std::string log;          // of all its processes
    std::size_t read = 0;     // of the log of this one
    std::uint32_t epoch = 0;  // the last in which it led
    // When it began to lead, as its log says it, and in which epoch.
    std::vector<std::pair<std::string, std::uint32_t>> led;
  };

  std::vector<std::string> flags(const Node& node) const;
  std::vector<std::string> environment(std::size_t node);
  void read_log(std::size_t node);
  void end(std::size_t node);
  bool says_it_leads(std::size_t node);
  [[noreturn]] void fail(const std::string& what);

  std::array<std::atomic<bool>, kNodes> cut_off_{};
  std::mutex
      logs_mutex_;  // of what follows, but for the processes, which only their thread touches
  std::array<Node, kNodes> servers_;
  std::vector<Reign> reigns_;
};

}  // namespace lockd::histories
