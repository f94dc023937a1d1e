#include "simulation/server.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "server/session/http_session.h"
#include "server/session/line_session.h"
#include "server/session/testing/memory_transport.h"

namespace lockd::simulation {
namespace {

using namespace std::chrono_literals;

// Small, so that segments follow on one another quickly, and snapshots take several turns.
LogJournalOptions journal_options(const Swarm& swarm) {
  LogJournalOptions small;
  small.sync_interval = swarm.sync_interval;
  small.segment_size = 6000;
  small.segment = {.reserve = 2048, .step_min = 2048, .step_max = 8192};
  small.describe_ahead = 256;
  small.behind_from = 0;  // whoever waits for the disk takes no more
  small.id = JournalId{0x1d};
  return small;
}

}  // namespace

// One end of a wire: what has arrived and was not taken, and what may not leave yet.
class Server::WireTransport final : public MemoryTransport {
 public:
  WireTransport(Server& server, std::uint64_t wire, bool is_http)
      : is_http(is_http), server_(server), wire_(wire) {}
  ~WireTransport() override { server_.wires_.erase(wire_); }

  const bool is_http;

  HostedSession& record() const { return hosted(); }
  void receive(std::string_view bytes) {
    unread_ += bytes;
    resume_input();
  }
  void receive_end() {
    input_ended_ = true;
    server_.host_->on_input_end(hosted());
  }
  void receive_reset() {
    is_closed_ = true;
    server_.host_->on_broken(hosted());
  }

  // As far as the session goes: what is left waits for one that blocks, or is half a request.
  void resume_input() override {
    for (std::size_t taken = 1; taken > 0 && !unread_.empty();) {
      taken = server_.host_->receive(hosted(), unread_);
      unread_.erase(0, taken);
    }
  }
  bool has_unread() const override { return !unread_.empty(); }
  bool input_pending() const override { return hosted().is_held_back && has_unread(); }
  bool peer_has_left() const override { return input_ended_; }
  void close() override {
    if (!std::exchange(is_closed_, true)) server_.place_.close(wire_);
  }
  bool is_idle() const override { return is_closed_; }

 private:
  void sent(std::string_view bytes) override {
    if (!is_closed_) server_.place_.send(wire_, bytes);
  }

  Server& server_;
  const std::uint64_t wire_;
  std::string unread_;
  bool input_ended_ = false;
  bool is_closed_ = false;
};

Server::Server(const Place& place, std::uint64_t life)
    : place_(place), access_(place.swarm.options), secrets_(life) {
  const Swarm& swarm = place.swarm;
  if (swarm.journal) log_.emplace(place.disk, journal_options(swarm));
  clock_ = std::make_unique<VirtualClock>(place.disk, log_ ? &*log_ : nullptr);
  if (log_) journal_.emplace(*log_, *clock_, &place.log);
  engine_ = std::make_unique<Engine>(
      EngineOptions{.shards = swarm.shards,
                    .keys_max = swarm.options.max_locks,
                    .waiters_max = swarm.options.max_waiters,
                    .refuses_tries_at_full_queue = swarm.options.dflockd_letter,
                    .keeps_idle_limits = swarm.options.dflockd_letter,
                    .holds_max = swarm.options.max_holds,
                    .holds_per_client_max = swarm.options.max_holds_per_client,
                    .ttl_max = swarm.options.max_lease_ttl,
                    .set_wait_max = swarm.options.max_set_wait,
                    .idle_max = swarm.options.gc_max_idle,
                    .gc_interval = swarm.options.gc_interval,
                    .clock = clock_.get(),
                    .journal = journal_ ? &*journal_ : nullptr,
                    .observer = &place.key_event_checker,
                    .sweeper = false,
                    .hash_seed = 1});
  host_ = std::make_unique<SessionHost>(host_setup());
  host_->context().date = "Sun, 06 Nov 1994 08:49:37 GMT";
}

HostSetup Server::host_setup() {
  return {
      .options = place_.swarm.options,
      .engine = *engine_,
      .hub = hub_,
      .feed = feed_,
      .secrets = secrets_,
      .access = access_,
      .clients = clients_,
      .stats = stats_,
      .unix_ms = [this] { return static_cast<std::int64_t>(place_.disk.now.wall_ns / 1'000'000); },
      .reports = reports_,
      .wake = [] {},  // a turn comes by itself
      .keeps_holds = has_journal()};
}

// What still waits ends first, while there is somebody to hear of it.
Server::~Server() {
  engine_->close();
  host_.reset();
  engine_.reset();
}

std::uint64_t Server::requests() const {
  std::uint64_t sum = stats_.line_requests.value();
  for (const auto& by_class : stats_.http_requests) {
    for (const auto& count : by_class) sum += count.value();
  }
  return sum;
}

// Clients come, speak and go.

// Null when its session is over.
Server::WireTransport* Server::find(std::uint64_t wire) const {
  const auto found = wires_.find(wire);
  return found == wires_.end() || found->second->record().is_over ? nullptr : found->second;
}

bool Server::is_ending(std::uint64_t wire) const {
  const auto found = wires_.find(wire);
  return found != wires_.end() && found->second->record().is_ending;
}

void Server::open(std::uint64_t wire, bool is_http) {
  std::unique_ptr<ServerSession> session;
  if (is_http) {
    session = std::make_unique<HttpSession>(host_->context(), wire);
  } else {
    session = std::make_unique<LineSession>(host_->context(), wire);
  }
  auto transport = std::make_unique<WireTransport>(*this, wire, is_http);
  wires_[wire] = transport.get();
  host_->open(std::move(session), std::move(transport));
}

void Server::receive(std::uint64_t wire, std::string_view bytes) {
  is_in_turn_ = true;
  if (WireTransport* const transport = find(wire)) transport->receive(bytes);
}

void Server::receive_end(std::uint64_t wire) {
  is_in_turn_ = true;
  if (WireTransport* const transport = find(wire)) transport->receive_end();
}

// Also after the session is over: nothing that is corked will be heard any more.
void Server::receive_reset(std::uint64_t wire) {
  is_in_turn_ = true;
  if (const auto found = wires_.find(wire); found != wires_.end()) found->second->receive_reset();
}

// Turns, and what is done beside them.

void Server::turn() {
  turned_ = true;
  do {
    host_->end_turn();
    end_pauses();
  } while (resume_held_back());
  is_in_turn_ = false;
}

// Those whose journal is behind no more, or who have been told something. Whether there was one.
bool Server::resume_held_back() {
  std::vector<WireTransport*> held_back;
  for (const auto& [id, wire] : wires_) {
    if (wire->record().is_held_back && !wire->record().is_over) held_back.push_back(wire);
  }
  bool resumed = false;
  for (WireTransport* wire : held_back) {
    wire->resume_input();
    resumed = resumed || !wire->record().is_held_back;
  }
  return resumed;
}

// Nobody guesses here: a pause need not take time.
void Server::end_pauses() {
  for (const auto& [id, wire] : wires_) {
    const bool is_paused = wire->record().session->pause() != ServerSession::Pause::none;
    if (is_paused && !wire->record().is_over) host_->on_event(wire->record(), PauseOver{});
  }
}

bool Server::sweep() {
  if (!turned_ && engine_->now() < next_sweep_) return false;
  next_sweep_ = engine_->sweep();
  turn();
  turned_ = false;
  return true;
}

RevokeResult Server::revoke(const RevokeRequest& request, Position* position) {
  turned_ = true;
  Batch batch(*engine_);
  RevokeResult result = batch.revoke(request);
  *position = batch.commit();
  return result;
}

Outcome Server::resize(std::string_view key, std::uint32_t limit) {
  turned_ = true;
  return Batch(*engine_).resize(key, limit, "", "ops");
}

void Server::drain() {
  is_draining_ = is_in_turn_ = true;
  host_->drain();
}

void Server::recheck() {
  is_in_turn_ = true;
  for (const auto& [id, wire] : wires_) host_->touch(wire->record());
}

bool Server::has_no_holders() const {
  return std::all_of(wires_.begin(), wires_.end(),
                     [](const auto& entry) { return entry.second->is_http; });
}

void Server::stop() {
  drain();
  turn();
  if (log_) log_->flush();
  turn();
  host_->cut_all();
  turn();
  engine_->close();
  turn();
  if (log_) log_->close();
  turn();
}

void Server::die() {
  if (journal_) journal_->cut_off();
  place_.key_event_checker.look_away(true);
}

}  // namespace lockd::simulation
