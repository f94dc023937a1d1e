#include "simulation/simulation.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "base/hash.h"
#include "crash/violation.h"

namespace lockd::simulation {
namespace {

using namespace std::chrono_literals;
using crash::violated;

constexpr Duration kSweepEvery = 20ms;

}  // namespace

Simulation::Simulation(const SimulationOptions& options)
    : options_(options),
      chance_(options.seed),
      swarm_(Swarm::draw(chance_)),
      disk_(std::make_unique<crash::SimulatedDisk>()),
      key_event_checker_(swarm_.options.max_waiters),
      promises_(swarm_.keys, swarm_.limit),
      acquisitions_(swarm_.keys),
      client_is_due_(swarm_.clients),
      frozen_until_(swarm_.clients),
      admin_(options.seed + 0x1000) {
  if (admin_.percent(50)) admin_every_ = std::chrono::milliseconds(admin_.between(20, 2000));
  for (std::uint32_t i = 0; i < swarm_.clients; ++i) {
    clients_.push_back(std::make_unique<Client>(i, chance_.percent(swarm_.http_percent),
                                                Chance(chance_.next()), swarm_, promises_,
                                                acquisitions_, static_cast<Outside&>(*this)));
  }
}

Simulation::~Simulation() {
  if (server_ != nullptr) server_->die();
}

std::uint64_t Simulation::hash() const { return hash_ ^ key_event_checker_.hash(); }

std::uint64_t Simulation::operations() const {
  std::uint64_t sum = 0;
  for (const auto& client : clients_) sum += client->requests();
  return sum;
}

void Simulation::run() {
  trace("seed", options_.seed, "is", swarm_.describe());
  start_server();
  for (std::uint32_t i = 0; i < swarm_.clients; ++i) let_act(i, delay());
  if (swarm_.faults() > 0) agenda_.enter(now_ + swarm_.fault_every, What::fault_strikes);
  if (admin_every_ > Duration::zero()) agenda_.enter(now_ + admin_every_, What::admin_acts);
  do {
    for (int i = 0; i < 64; ++i) step();
    promises_.prune(now_);
    acquisitions_.prune(now_, promises_);
  } while (operations() < options_.operations);
  heal();

  stats_.seeds = 1;
  stats_.operations = operations();
  stats_.grants_told = promises_.grants();
  stats_.grants_told_again = promises_.grants_again();
  stats_.granted = key_event_checker_.count(KeyEvent::Type::granted);
  stats_.granted_shared = key_event_checker_.granted_shared();
  stats_.granted_several = key_event_checker_.granted_several();
  stats_.granted_sets = key_event_checker_.granted_sets();
  stats_.granted_sets_late = key_event_checker_.granted_sets_late();
  stats_.expired = key_event_checker_.count(KeyEvent::Type::expired);
  stats_.revoked = key_event_checker_.count(KeyEvent::Type::revoked);
  stats_.resized = key_event_checker_.count(KeyEvent::Type::resized);
  stats_.disconnected = key_event_checker_.count(KeyEvent::Type::disconnected);
  stats_.gave_up = key_event_checker_.count(KeyEvent::Type::gave_up);
  stats_.virtual_seconds = static_cast<double>(now_.ns) / 1e9;
}

// Time.

void Simulation::step() {
  const Entry entry = agenda_.pop();
  if (now_ < entry.at) pass(entry.at - now_);
  ++stats_.steps;
  try {
    execute(entry);
  } catch (const Crash&) {
    stats_.count(FaultKind::kill_in_call);
    chance_.percent(50) ? kill() : fail_power();
  }
}

void Simulation::execute(const Entry& entry) {
  switch (entry.what) {
    case What::client_acts: return act(static_cast<std::uint32_t>(entry.subject));
    case What::to_server: return deliver_to_server(entry.subject);
    case What::to_client: return deliver_to_client(entry.subject);
    case What::server_starts: return start_server();
    case What::fault_strikes: return strike();
    case What::admin_acts: return act_as_admin();
    default: break;
  }
  if (server_ == nullptr || entry.subject != life_) return;  // of a server that is no more
  switch (entry.what) {
    case What::server_turns:
      turn_is_due_ = false;
      server_->turn();
      check();
      return have_journal_turn(delay());
    case What::server_sweeps:
      agenda_.enter(now_ + kSweepEvery, What::server_sweeps, life_);
      if (!server_->sweep()) return;
      check();
      return have_journal_turn(delay());
    case What::journal_turns: return turn_journal();
    case What::server_stops: return stop_if_drained();
    default: return;
  }
}

void Simulation::pass(Duration by) {
  now_ = now_ + by;
  disk_->advance(by);
}

// After each step in which the server did something.
void Simulation::check() {
  ++stats_.checks;
  key_event_checker_.check(server_->is_in_turn());
  // What it cannot say to its clients while it stops, it leaves to the next life.
  const bool leaves_holds = server_->is_draining() && server_->has_failed();
  if (swarm_.options.auto_release_on_disconnect && !leaves_holds) {
    key_event_checker_.check_sessions(
        [this](Key key, SessionId session) { return is_held_rightly(key, session); });
  }
  const std::string broken = server_->engine().check();
  if (!broken.empty()) throw crash::Violation(broken);
}

// By one who is there. The checker knows the session that was granted a hold, not one that took it
// over.
bool Simulation::is_held_rightly(Key key, SessionId session) const {
  const auto is_there = [this](SessionId id) {
    return server_->is_open(id) || server_->is_ending(id);
  };
  return is_there(session) || acquisitions_.may_have_passed_on(key, session, is_there);
}

// Clients.

void Simulation::let_act(std::uint32_t client, Duration after) {
  if (client_is_due_[client] || !clients_[client]->can_act()) return;
  client_is_due_[client] = true;
  agenda_.enter(std::max(now_ + after, frozen_until_[client]), What::client_acts, client);
}

void Simulation::act(std::uint32_t client) {
  client_is_due_[client] = false;
  if (now_ < frozen_until_[client]) return let_act(client, 0ms);
  clients_[client]->act();
  let_act(client, chance_.below(swarm_.think_max));
}

// The admin, who is told what it did once that is durable, as everybody is.

void Simulation::act_as_admin() {
  if (healed_) return;
  agenda_.enter(now_ + admin_.below(2 * admin_every_), What::admin_acts);
  if (server_ == nullptr) return;
  const bool of_semaphore = admin_.percent(swarm_.semaphore_percent);
  const Key key{of_semaphore ? Kind::semaphore : Kind::lock,
                static_cast<std::uint32_t>(admin_.below(swarm_.keys))};
  // Of one key alone: for the others the limit is known to the last.
  of_semaphore&& key.number == 0 && admin_.percent(50) ? resize(key) : revoke(key);
  check();
  have_turn();
  have_journal_turn(delay());
}

// All of the key, or the hold that was told of last: its owner may be renewing it, or it is over.
void Simulation::revoke(Key key) {
  const std::string name = key.name();
  RevokeRequest request{.key = name, .kind = key.kind, .reason = "", .by = "ops"};
  if (admin_.percent(70)) request.fence = promises_.largest_told(key);
  Position position = 0;
  const RevokeResult revoked = server_->revoke(request, &position);
  trace("admin ends", name, "fence", request.fence.value_or(0), "holds:", revoked.count);
  for (const HoldStatus& hold : revoked.holds) {
    if (request.fence.has_value() && hold.fence != *request.fence) {
      violated("revoked-as-named", name + " fence " + std::to_string(hold.fence) + " was ended");
    }
    promises_.revoked(key, hold.fence, now_);
    unacknowledged_revocations_.push_back({key, hold.fence, position});
  }
  tell_admin();
}

void Simulation::resize(Key key) {
  const auto limit = static_cast<std::uint32_t>(admin_.between(1, 5));
  trace("admin resizes", key.name(), "to", limit);
  if (server_->resize(key.name(), limit) == Outcome::ok) promises_.resized(key, limit);
}

void Simulation::tell_admin() {
  std::erase_if(unacknowledged_revocations_, [this](const Revocation& revocation) {
    if (server_->has_journal() && server_->durable() < revocation.position) return false;
    promises_.revocation_told(revocation.key, revocation.fence, now_);
    return true;
  });
}

// The server.

Place Simulation::place() {
  return {.disk = *disk_,
          .swarm = swarm_,
          .key_event_checker = key_event_checker_,
          .log = log_,
          .send =
              [this](std::uint64_t id, std::string_view bytes) {
                hash_ = hash_bytes(bytes, HashKey::of_seed(hash_ ^ id));
                trace("server says on", id, bytes);
                if (const auto found = wires_.find(id); found != wires_.end()) {
                  transmit(*found->second, false, bytes);
                }
              },
          .close =
              [this](std::uint64_t id) {
                trace("server closes", id);
                if (server_ != nullptr && !stops_) check_holders_are_served(id);
                if (const auto found = wires_.find(id); found != wires_.end()) {
                  close(*found->second, false, Segment::What::end);
                  drop_if_over(id);
                }
              }};
}

void Simulation::start_server() {
  disk_->watch = [this](crash::SimulatedDisk::Operation, const std::string&) {
    if (calls_until_crash_ > 0 && --calls_until_crash_ == 0) throw Crash{};
  };
  disk_->fault = [this](crash::SimulatedDisk::Operation operation, const std::string&) {
    if (std::exchange(disk_fails_, false)) return EIO;
    const bool starts = server_ == nullptr;
    const bool creates = operation == crash::SimulatedDisk::Operation::create;
    return no_files_ && creates && !starts ? EMFILE : 0;
  };
  ++life_;
  trace("server begins life", life_);
  key_event_checker_.look_away(false);
  key_event_checker_.restart();
  disk_may_fail_ = disk_fails_;
  const bool is_new = disk_->size() == 0;
  const bool may_refuse = disk_fails_ || (is_new && disk_->capacity != UINT64_MAX);
  try {
    server_ = std::make_unique<Server>(place(), life_ ^ (options_.seed << 20));
  } catch (const std::runtime_error& error) {  // what is there was not accepted
    if (!may_refuse) violated("recovery-accepts", error.what());
    ++stats_.refused_starts;
    disk_->capacity = UINT64_MAX;
    agenda_.enter(now_ + 100ms, What::server_starts);
    return;
  }
  if (server_->has_journal()) {
    const crash::Holds holds = server_->holds();
    log_.recovered(server_->durable(), holds);
    key_event_checker_.recovered(holds);
  }
  turn_is_due_ = false;
  journal_turn_is_due_ = server_->has_journal();  // its thread begins with one
  if (journal_turn_is_due_) agenda_.enter(now_ + delay(), What::journal_turns, life_);
  agenda_.enter(now_ + kSweepEvery, What::server_sweeps, life_);
  for (std::uint32_t i = 0; i < swarm_.clients; ++i) let_act(i, delay());
}

void Simulation::have_turn() {
  if (std::exchange(turn_is_due_, true)) return;
  agenda_.enter(now_ + chance_.below(Duration(50us)), What::server_turns, life_);
}

void Simulation::have_journal_turn(Duration after) {
  if (!server_->wants_journal() || std::exchange(journal_turn_is_due_, true)) return;
  agenda_.enter(now_ + after, What::journal_turns, life_);
}

void Simulation::turn_journal() {
  journal_turn_is_due_ = false;
  const Duration next = server_->journal_turn();
  check();
  tell_admin();
  const bool always = swarm_.sync_interval == Duration::zero();
  if (always || !disk_->unsynced_since()) log_.settle(server_->durable());
  if (server_->has_failed()) {
    trace("the journal has failed");
    if (!disk_may_fail_) violated("shortages-pass", "the journal has failed, and the disk has not");
    agenda_.enter(now_ + 1ms, What::fault_strikes);  // nothing but its end is left
    return;
  }
  have_turn();
  if (next == Duration::max() || std::exchange(journal_turn_is_due_, true)) return;
  agenda_.enter(now_ + std::max<Duration>(next, 20us), What::journal_turns, life_);
}

bool Simulation::server_failed_since(Time then) const {
  return (server_ != nullptr && server_->has_failed()) || failing_until_ >= then;
}

bool Simulation::server_stopped_since(Time then) const {
  return (server_ != nullptr && server_->is_draining()) || stopped_at_ >= then;
}

// With `all_lost` what was told may be undone: then it is not heard later either.
void Simulation::end_life(Duration down, bool all_lost) {
  if (server_->has_failed()) failing_until_ = now_;
  if (server_->is_draining()) stopped_at_ = now_;
  server_->die();
  server_.reset();
  unacknowledged_revocations_.clear();
  calls_until_crash_ = 0;
  all_lost |= !swarm_.journal;
  if (all_lost) promises_.all_lost(now_);
  for (auto& [id, wire] : wires_) {
    wire->to_server.drop();
    if (all_lost || chance_.percent(50)) wire->to_client.drop();
    wire->server_closed = false;  // its end may have been on its way
    close(*wire, false, Segment::What::reset);
  }
  agenda_.enter(now_ + down, What::server_starts);
}

}  // namespace lockd::simulation
