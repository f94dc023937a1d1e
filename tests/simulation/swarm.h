// What one seed is about: sizes, settings, weights and faults, each drawn on its own, many of them
// left out. A mix that is always the same has blind spots: with every fault there is, no queue ever
// grows long.
#pragma once

#include <cstdint>
#include <string>

#include "base/testing/chance.h"
#include "lockd/types.h"
#include "server/settings/options.h"

namespace lockd::simulation {

struct Swarm {
  static Swarm draw(Chance& chance);

  std::string describe() const;

  // Who there is, and what there is to be had.
  std::uint32_t clients = 4;
  std::uint32_t http_percent = 0;  // of the clients
  std::uint32_t keys = 2;          // of each kind
  std::uint32_t limit = 2;         // of the semaphores
  std::uint32_t pipeline = 1;      // requests that a client sends before it listens

  // The server.
  Options options{};
  std::uint32_t shards = 1;
  bool journal = true;
  Duration sync_interval{};

  // Weights of what clients ask for.
  std::uint32_t acquire = 10;
  std::uint32_t enqueue = 0;
  std::uint32_t semaphore_percent = 0;
  std::uint32_t shared_percent = 0;   // of the requests for locks
  std::uint32_t several_percent = 0;  // of those for semaphores: for several permits
  std::uint32_t secret_percent = 0;   // of a line's: by a secret that the client chose
  std::uint32_t sets = 0;             // of several keys in one step, by HTTP
  std::uint32_t renew = 0;
  std::uint32_t release = 10;
  std::uint32_t signal = 0;
  std::uint32_t lie = 0;
  std::uint32_t leave = 0;  // closes its connection, in one way or another
  Duration think_max{};     // between two requests
  std::uint32_t lease_s_max = 5;
  std::uint32_t wait_s_max = 3;

  // The network.
  Duration delay_max{};
  bool splits = false;

  // Faults: how often one strikes, and the weight of each kind. Zero: never.
  Duration fault_every{};
  std::uint32_t cut = 0;
  std::uint32_t freeze = 0;  // of a client
  std::uint32_t stall = 0;   // of the server: everything happens, late
  std::uint32_t kill = 0;
  std::uint32_t kill_in_call = 0;
  std::uint32_t power_failure = 0;
  std::uint32_t stop = 0;  // as by SIGTERM
  std::uint32_t disk_error = 0;
  std::uint32_t disk_full = 0;
  std::uint32_t full_start = 0;  // killed, and nothing is left on the disk when it comes back
  std::uint32_t no_files = 0;    // no file can be made: no descriptors are left
  std::uint32_t wall_jump = 0;

  std::uint32_t faults() const {
    return cut + freeze + stall + kill + kill_in_call + power_failure + stop + disk_error +
           disk_full + full_start + no_files + wall_jump;
  }
};

}  // namespace lockd::simulation
