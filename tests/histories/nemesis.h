// Breaks things, one after the other: servers, their disks and clocks, the network, clients.
//
// For one thread, which must live as long as the servers do.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "histories/chaos_proxy.h"
#include "histories/client_pool.h"
#include "histories/recording.h"
#include "histories/server_under_test.h"

namespace lockd::histories {

class Nemesis {
 public:
  struct Victims {
    std::vector<ProcessUnderTest*> processes;
    std::vector<ServerUnderTest*> all;
    ChaosProxy* proxy;
    ClientPool* clients;
  };

  Nemesis(Recording& recording, Victims victims, std::uint64_t seed);

  // Something that was not broken for longest, and repairs it again.
  void strike();
  // Leaves everything as it should be, and says so in the history.
  void heal();
  // How many kinds there are.
  std::size_t kinds() const { return blows_.size(); }

 private:
  using Blow = std::function<void()>;

  void add_blows_to_servers();
  void add_blows_to_disks_and_clocks();
  void add_blows_to_network_and_clients();
  void end_life(std::string_view name, ServerUnderTest& subject, const std::function<void()>& how);
  void disturb(std::string_view name, std::atomic<std::int64_t> LiveFaults::*setting,
               std::int64_t value);
  void drain();
  void start_on_full_disk();
  void fill_disk_for_renewals();
  void withhold_descriptors();
  void fail_sync();
  void reboot();

  ProcessUnderTest& process() { return *victims_.processes[random_() % victims_.processes.size()]; }
  ServerUnderTest& subject() { return *victims_.all[random_() % victims_.all.size()]; }
  void pause_ms(std::uint64_t least, std::uint64_t most);
  std::int64_t between(std::int64_t least, std::int64_t most);

  Recording& recording_;
  const Victims victims_;
  std::mt19937_64 random_;
  std::vector<Blow> blows_;
  std::size_t next_ = 0;
};

}  // namespace lockd::histories
