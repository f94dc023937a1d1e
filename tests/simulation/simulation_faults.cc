// What goes wrong in a simulated world, and how it must come right.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "crash/holds.h"
#include "crash/violation.h"
#include "journal/recovery.h"
#include "lockd/file_journal.h"
#include "simulation/simulation.h"

namespace lockd::simulation {
namespace {

using namespace std::chrono_literals;
using crash::violated;

// How often it is looked whether everybody is gone.
constexpr Duration kStopsEvery = 20ms;

}  // namespace

void Simulation::strike() {
  if (healed_) return;
  const bool failed = server_ != nullptr && server_->has_failed();
  if (failed) return kill();
  agenda_.enter(now_ + chance_.below(2 * swarm_.fault_every), What::fault_strikes);
  if (server_ == nullptr) return;
  Lot lot(chance_, swarm_.faults());
  const auto count = [this](FaultKind kind) {
    stats_.count(kind);
    trace("fault:", kFaultNames[static_cast<std::size_t>(kind)]);
  };
  if (lot.falls_on(swarm_.cut)) {
    cut();
  } else if (lot.falls_on(swarm_.freeze)) {
    count(FaultKind::freeze);
    frozen_until_[chance_.below(swarm_.clients)] =
        now_ + std::chrono::milliseconds(chance_.between(10, 8000));
  } else if (lot.falls_on(swarm_.stall)) {
    count(FaultKind::stall);
    pass(std::chrono::milliseconds(chance_.between(10, 8000)));
  } else if (lot.falls_on(swarm_.kill)) {
    count(FaultKind::kill);
    kill();
  } else if (lot.falls_on(swarm_.kill_in_call)) {
    calls_until_crash_ = static_cast<int>(chance_.between(1, 30));
  } else if (lot.falls_on(swarm_.power_failure)) {
    count(FaultKind::power_failure);
    fail_power();
  } else if (lot.falls_on(swarm_.stop)) {
    count(FaultKind::stop);
    drain();
  } else if (lot.falls_on(swarm_.disk_error)) {
    count(FaultKind::disk_error);
    disk_fails_ = disk_may_fail_ = true;
  } else if (lot.falls_on(swarm_.disk_full)) {
    count(FaultKind::disk_full);
    disk_->capacity =
        disk_->capacity == UINT64_MAX ? disk_->size() + chance_.below(4096) : UINT64_MAX;
  } else if (lot.falls_on(swarm_.full_start)) {
    count(FaultKind::full_start);
    chance_.percent(50) ? kill() : fail_power();
    disk_->capacity = disk_->size();
  } else if (lot.falls_on(swarm_.no_files)) {
    count(FaultKind::no_files);
    no_files_ = !no_files_;
  } else {
    count(FaultKind::wall_jump);
    const std::uint64_t by = chance_.between(1, 7200) * 1'000'000'000;
    disk_->now.wall_ns += chance_.percent(50) ? by : -by;
  }
}

void Simulation::kill() {
  ++stats_.crashes;
  trace("the process is killed");
  end_life(std::chrono::milliseconds(chance_.between(1, 500)));
  disk_ = std::make_unique<crash::SimulatedDisk>(*disk_);
}

// The clocks stand still while the machine is down, but for the one on the wall.
void Simulation::fail_power() {
  ++stats_.crashes;
  trace("the power fails");
  const Duration down = std::chrono::milliseconds(chance_.between(1, 2000));
  // How long it was down, a clock that jumps does not tell.
  end_life(down, swarm_.sync_interval != Duration::zero() || swarm_.wall_jump > 0);
  const ClockReading before = disk_->now;
  auto files = disk_->after_power_failure(crash::Survival::at_random(Chance(chance_.next())));
  disk_ = std::make_unique<crash::SimulatedDisk>(*files);
  disk_->now = before;
  disk_->reboot(Duration::zero());
}

// A second time it is stopped at once.
void Simulation::drain() {
  if (server_->is_draining()) return stop();
  trace("the server is asked to stop");
  server_->drain();
  stops_at_ = now_ + (chance_.percent(25) ? Duration::zero() : chance_.below(Duration(5s)));
  have_turn();
  agenda_.enter(now_ + kStopsEvery, What::server_stops, life_);
}

void Simulation::stop_if_drained() {
  if (server_->has_no_holders() || now_ >= stops_at_) return stop();
  server_->recheck();
  have_turn();
  agenda_.enter(now_ + kStopsEvery, What::server_stops, life_);
}

// Only who is not certain to hold anything is closed while the server drains.
void Simulation::check_holders_are_served(std::uint64_t wire) {
  if (!server_->is_draining() || server_->has_failed()) return;
  if (const Known* known = promises_.certain_on(wire, now_)) {
    violated("holders-served", "wire " + std::to_string(wire) + " is closed, on which client " +
                                   std::to_string(known->client) + " holds " + known->key.name());
  }
}

void Simulation::stop() {
  trace("the server is stopped");
  // What waits for the journal is written and told before it goes.
  stops_ = true;
  server_->stop();
  stops_ = false;
  key_event_checker_.check();
  if (server_->has_failed()) ++stats_.crashes;
  // On a full disk there may be no room for the frame that vouches for the last.
  const bool is_vouched_for = server_->engine().journal_state() == Journal::State::accepting;
  end_life(std::chrono::milliseconds(chance_.between(1, 500)));
  disk_ = std::make_unique<crash::SimulatedDisk>(*disk_);
  if (swarm_.journal && is_vouched_for) flip_bits();
}

// What a start from copies of the disk finds of which one bit is another: the same, or damage.
void Simulation::flip_bits() {
  constexpr int kBits = 8;
  const auto recover = [](crash::SimulatedDisk& disk) {
    const Log silent = [](std::string_view) {};
    crash::Holds holds;
    replay(disk, scan(disk, silent), silent, [&](const Event& event) { holds.apply(event); });
    return holds;
  };
  crash::SimulatedDisk whole(*disk_);
  const crash::Holds expected = recover(whole);
  const std::vector<std::string> names = disk_->names();
  Chance chance(options_.seed + life_);  // so that the world is the same with this or without
  for (int i = 0; i < kBits; ++i) {
    crash::SimulatedDisk disk(*disk_);
    const std::string& name = i % 2 == 0 ? names.back() : names[chance.below(names.size())];
    const std::size_t used = disk.used(name);
    const std::size_t byte =
        i % 2 == 0 ? used - 1 - chance.below(std::min<std::size_t>(used, 200)) : chance.below(used);
    disk.flip_bit(name, 8 * byte + chance.below(8));
    stats_.count(FaultKind::flipped_bit);
    try {
      const crash::Holds found = recover(disk);
      if (!found.differs_from(expected).empty() ||
          found.largest_fence() != expected.largest_fence()) {
        violated("damage-found", "byte " + std::to_string(byte) + " of " + name +
                                     " changed: " + found.differs_from(expected));
      }
    } catch (const JournalError&) {
    }
  }
}

void Simulation::cut() {
  std::vector<Wire*> open;
  for (auto& [id, wire] : wires_) {
    if (!wire->client_closed && wire->life == life_) open.push_back(wire.get());
  }
  if (open.empty()) return;
  stats_.count(FaultKind::cut);
  Wire& wire = *open[chance_.below(open.size())];
  trace("wire", wire.id, "is cut");
  promises_.connection_lost(wire.id, swarm_.options.auto_release_on_disconnect && !wire.is_http,
                            now_);
  wire.to_server.drop();
  wire.to_client.drop();
  wire.server_closed = false;  // its end may have been on its way
  close(wire, true, Segment::What::reset);
  close(wire, false, Segment::What::reset);
}

// The second phase.

void Simulation::heal() {
  trace("nothing goes wrong any more");
  healed_ = true;
  disk_fails_ = no_files_ = false;
  calls_until_crash_ = 0;
  disk_->capacity = UINT64_MAX;
  if (server_ != nullptr && server_->has_failed()) kill();
  if (server_ != nullptr && server_->is_draining()) stop();
  const Duration longest =
      std::chrono::seconds(swarm_.lease_s_max + swarm_.wait_s_max) + swarm_.options.gc_max_idle;
  const Time until = now_ + longest + 30s;
  for (const auto& client : clients_) client->retire();
  while (now_ < until) step();
  check_all_is_over();
  check_all_can_be_taken();
}

void Simulation::check_all_is_over() {
  if (server_ == nullptr) violated("comes-right", "the server did not come back");
  for (const auto& client : clients_) {
    if (client->waits_for_replies()) violated("comes-right", client->describe() + " still waits");
  }
  const lockd::Stats now = server_->engine().stats();
  if (now.locks_held + now.semaphore_holders + now.lock_waiters + now.semaphore_waiters != 0) {
    violated("comes-right", "something is still held or waited for");
  }
  if (now.keys != 0) violated("comes-right", std::to_string(now.keys) + " idle keys are kept");
}

// By somebody new, one key after the other, at once, and under a fence that nobody was ever told.
void Simulation::check_all_can_be_taken() {
  const std::uint64_t id = ++last_wire_;
  std::string heard;
  wires_[id] = std::make_unique<Wire>(Wire{.id = id, .life = life_});
  Wire& wire = *wires_[id];
  server_->open(id, false);
  for (std::uint32_t i = 0; i < swarm_.keys; ++i) {
    const Key key{Kind::lock, i};
    server_->receive(id, "l\n" + key.name() + "\n0 1\n");
    server_->turn();
    while (server_->wants_journal()) server_->journal_turn();
    server_->turn();
    std::string reply;
    pass(2s);
    server_->sweep();
    while (wire.to_client.is_due(now_)) reply += wire.to_client.take().bytes;
    const bool ok = reply.starts_with("ok ");
    const Fence fence = ok ? std::stoull(reply.substr(3, 16), nullptr, 16) : 0;
    if (!ok) violated("comes-right", key.name() + " cannot be taken: " + reply);
    if (fence <= promises_.largest_told(key)) violated("fences-rise", key.name() + ": " + reply);
  }
}

}  // namespace lockd::simulation
