// A whole world from one seed: a server that dies and comes back, its disk, the network, and
// clients who hold what they are told against the promises. One thread, no clock but its own; the
// same seed gives the same world, to the last bit.
//
// First everything goes wrong that the seed has drawn, and nothing may be violated. Then nothing
// goes wrong any more, and everything must come right: who waits is answered, what was held is
// free again, and can be taken.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/agenda.h"
#include "simulation/client.h"
#include "simulation/server.h"
#include "simulation/simulation_stats.h"

namespace lockd::simulation {

struct SimulationOptions {
  std::uint64_t seed = 1;
  std::uint64_t operations = 20'000;
  std::function<void(const std::string&)> trace{};  // told of every step
};

class Simulation final : private Outside {
 public:
  explicit Simulation(const SimulationOptions& options);
  ~Simulation();

  // Throws crash::Violation.
  void run();

  const SimulationStats& stats() const { return stats_; }
  // Of everything that was said and done.
  std::uint64_t hash() const;

 private:
  struct Crash {};  // thrown in the midst of a call to the disk

  // Of Outside.
  Time now() const override { return now_; }
  Wire* connect(std::uint32_t client, bool is_http) override;
  void send(Wire& wire, std::string_view bytes) override;
  void send_end(Wire& wire) override;
  void reset(Wire& wire) override;
  bool server_failed_since(Time then) const override;
  bool server_stopped_since(Time then) const override;

  // Time.
  void step();
  void execute(const Entry& entry);
  void pass(Duration by);
  void check();
  bool is_held_rightly(Key key, SessionId session) const;

  // The network.
  Duration delay();
  void transmit(Wire& wire, bool to_server, std::string_view bytes);
  void close(Wire& wire, bool to_server, Segment::What how);
  void deliver_to_server(std::uint64_t id);
  void deliver_to_client(std::uint64_t id);
  void drop_if_over(std::uint64_t id);

  // Clients.
  void let_act(std::uint32_t client, Duration after);
  void act(std::uint32_t client);

  // The server.
  void start_server();
  void have_turn();
  void have_journal_turn(Duration after);
  void turn_journal();
  void end_life(Duration down, bool all_lost = false);
  Place place();

  // The admin.
  void act_as_admin();
  void revoke(Key key);
  void resize(Key key);
  void tell_admin();

  // Faults.
  void strike();
  void kill();
  void fail_power();
  void drain();
  void stop_if_drained();
  void stop();
  void check_holders_are_served(std::uint64_t wire);
  void flip_bits();
  void cut();

  // The second phase.
  void heal();
  void check_all_is_over();
  void check_all_can_be_taken();

  std::uint64_t operations() const;
  template <typename... Parts>
  void trace(const Parts&... parts) {
    if (!options_.trace) return;
    std::string text = std::to_string(now_.ns / 1000) + " us:";
    ((text += " " + shown(parts)), ...);
    options_.trace(text);
  }
  static std::string shown(std::string_view text) { return std::string(text); }
  static std::string shown(std::uint64_t number) { return std::to_string(number); }

  const SimulationOptions options_;
  Chance chance_;
  const Swarm swarm_;
  SimulationStats stats_;
  Time now_{};  // since the world began; no clock of it shows this
  Agenda agenda_;
  std::unique_ptr<crash::SimulatedDisk> disk_;
  KeyEventChecker key_event_checker_;
  AppendedLog log_;
  Promises promises_;
  Acquisitions acquisitions_;
  std::unique_ptr<Server> server_;
  std::uint64_t life_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Wire>> wires_;
  std::uint64_t last_wire_ = 0;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<bool> client_is_due_;  // it is on the agenda
  std::vector<Time> frozen_until_;
  Chance admin_;            // what the admin does; of half of the worlds, which have none
  Duration admin_every_{};  // zero: there is none
  struct Revocation {
    Key key;
    Fence fence;
    Position position;
  };
  std::vector<Revocation> unacknowledged_revocations_;  // until the admin may be told
  bool turn_is_due_ = false;
  bool journal_turn_is_due_ = false;
  bool stops_ = false;  // the server cuts what is left
  bool healed_ = false;
  int calls_until_crash_ = 0;
  bool disk_fails_ = false;
  bool disk_may_fail_ = false;  // in this life of the server it was to
  bool no_files_ = false;
  Time stops_at_{};       // the server that drains, whoever is left
  Time stopped_at_{};     // when the last server that was asked to went
  Time failing_until_{};  // when the last server whose journal had failed went
  std::uint64_t hash_ = 0;
};

}  // namespace lockd::simulation
