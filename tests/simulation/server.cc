#include "simulation/server.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/session/http_session.h"
#include "server/session/line_session.h"

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
  small.id = JournalId{0x1d};
  return small;
}

}  // namespace

Server::Server(const Place& place, std::uint64_t life) : place_(place), secrets_(life) {
  const Swarm& swarm = place.swarm;
  if (swarm.journal) log_.emplace(place.disk, journal_options(swarm));
  clock_ = std::make_unique<VirtualClock>(place.disk, log_ ? &*log_ : nullptr);
  if (log_) journal_.emplace(*log_, *clock_, &place.log);
  engine_ = std::make_unique<Engine>(EngineOptions{.shards = swarm.shards,
                                                   .keys_max = swarm.options.max_locks,
                                                   .waiters_max = swarm.options.max_waiters,
                                                   .idle_max = swarm.options.gc_max_idle,
                                                   .gc_interval = swarm.options.gc_interval,
                                                   .clock = clock_.get(),
                                                   .journal = journal_ ? &*journal_ : nullptr,
                                                   .observer = &place.witness,
                                                   .sweeper = false,
                                                   .hash_seed = 1});
  batch_.emplace(*engine_);
  context_ = std::make_unique<SessionContext>(SessionContext{
      .options = swarm.options,
      .hub = hub_,
      .engine = *engine_,
      .batch = *batch_,
      .secrets = secrets_,
      .listener = *this,
      .desk = *this,
      .stats = figures_,
      .mailbox = hub_.attach(*this),
      .unix_ms = [this] { return static_cast<std::int64_t>(place_.disk.now.wall_ns / 1'000'000); },
      .date = "Sun, 06 Nov 1994 08:49:37 GMT"});
}

// The engine settles what still waits, and has to find somebody to tell.
Server::~Server() {
  connections_.clear();
  batch_.reset();
  engine_.reset();
}

std::uint64_t Server::http_requests() const {
  std::uint64_t sum = 0;
  for (const auto& by_class : figures_.http_requests) {
    for (const auto& count : by_class) sum += count.value();
  }
  return sum;
}

// Clients come, speak and go.

void Server::open(std::uint64_t wire, bool is_http) {
  Connection& connection = connections_[wire];
  if (is_http) {
    connection.session = std::make_unique<HttpSession>(*context_, wire);
  } else {
    connection.session = std::make_unique<LineSession>(*context_, wire);
  }
}

void Server::receive(std::uint64_t wire, std::string_view bytes) {
  const auto found = connections_.find(wire);
  if (found == connections_.end() || found->second.finishing) return;
  found->second.unread += bytes;
  touch(wire, found->second);
}

void Server::receive_end(std::uint64_t wire) {
  const auto found = connections_.find(wire);
  if (found == connections_.end() || found->second.finishing) return;
  found->second.input_ended = true;
  touch(wire, found->second);
}

void Server::receive_reset(std::uint64_t wire) {
  const auto found = connections_.find(wire);
  if (found == connections_.end()) return;
  end_session(found->second, Ender::peer);
  connections_.erase(found);
  batch_->commit();
}

void Server::touch(std::uint64_t wire, Connection& connection) {
  if (!std::exchange(connection.touched, true)) touched_.push_back(wire);
}

// A turn.

void Server::turn() {
  turned_ = true;
  // By number: what is touched on the way comes behind.
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    const auto found = connections_.find(touched_[i]);
    if (found != connections_.end()) take_in(found->second);
  }
  Position position = 0;  // what this turn's answers rest on
  do {
    position = std::max(position, batch_->commit());
  } while (take_inbox());
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    const auto found = connections_.find(touched_[i]);
    if (found == connections_.end()) continue;
    found->second.touched = false;
    flush(found->second, position);
  }
  touched_.clear();
  batch_->commit();
  release_held();
}

void Server::take_in(Connection& connection) {
  ServerSession& session = *connection.session;
  while (!connection.finishing && !connection.unread.empty() &&
         session.fate() == ServerSession::Fate::open && !session.blocked()) {
    const std::size_t taken = session.take_in(connection.unread, connection.out);
    connection.unread.erase(0, taken);
    if (taken == 0) return;
  }
}

// False when there was nothing.
bool Server::take_inbox() {
  const std::vector<WaitResult> inbox = std::exchange(inbox_, {});
  const auto signals = std::exchange(signals_, {});
  const std::vector<SessionId> reports = std::exchange(reports_, {});
  for (const WaitResult& settled : inbox) {
    const auto found = connections_.find(settled.id);
    if (found == connections_.end() || found->second.finishing) {
      take_back(settled);
    } else {
      settle(found->first, found->second, settled);
    }
  }
  for (const auto& [wire, signal] : signals) {
    const auto found = connections_.find(wire);
    if (found == connections_.end() || found->second.finishing) continue;
    found->second.session->signalled(*signal, found->second.out);
    touch(wire, found->second);
  }
  for (const SessionId id : reports) {
    const auto found = connections_.find(id);
    if (found == connections_.end() || found->second.finishing) continue;
    found->second.session->report("{}", found->second.out);
    touch(id, found->second);
    take_in(found->second);
  }
  return !inbox.empty() || !signals.empty() || !reports.empty();
}

void Server::settle(std::uint64_t wire, Connection& connection, const WaitResult& settled) {
  ServerSession& session = *connection.session;
  if (settled.outcome == Outcome::ok && session.holds_outlive_it() && connection.input_ended) {
    end_session(connection, Ender::peer);
    return take_back(settled);
  }
  session.on_wait_done(settled, connection.out);
  touch(wire, connection);
  take_in(connection);
}

void Server::take_back(const WaitResult& settled) {
  const auto found = abandoned_.find(settled.id);
  if (found == abandoned_.end()) return;
  const Abandoned abandoned = std::move(found->second);
  abandoned_.erase(found);
  if (settled.outcome != Outcome::ok) return;
  const Holder by_secret(nullptr, settled.grant.secret);
  batch_->withdraw({.key = abandoned.key,
                    .holder = abandoned.holder.empty() ? by_secret : Holder(abandoned.holder),
                    .fence = settled.grant.fence,
                    .kind = abandoned.kind});
}

void Server::deliver(std::span<const std::uint64_t> subscribers,
                     const std::shared_ptr<const Signal>& signal) noexcept {
  for (const std::uint64_t id : subscribers) signals_.emplace_back(id, signal);
}

// Nobody may hear of what a crash could still undo.
void Server::flush(Connection& connection, Position position) {
  if (!connection.out.empty()) {
    connection.held.push_back({position, std::exchange(connection.out, {})});
  }
  if (connection.finishing) return;
  const ServerSession& session = *connection.session;
  const bool all_taken_in =
      connection.input_ended && (connection.unread.empty() || !session.blocked());
  if (connection.input_ended && session.needs_peer()) {
    return end_session(connection, Ender::peer);
  }
  const bool over = session.fate() != ServerSession::Fate::open || all_taken_in;
  if (over && !session.blocked()) {
    end_session(connection, all_taken_in ? Ender::peer : Ender::server);
  }
}

void Server::release_held() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    auto& [wire, connection] = *at;
    while (!connection.held.empty() && engine_->is_durable(connection.held.front().position)) {
      place_.send(wire, connection.held.front().bytes);
      connection.held.pop_front();
    }
    if (connection.finishing && connection.held.empty()) {
      place_.close(wire);
      at = connections_.erase(at);
    } else {
      ++at;
    }
  }
}

void Server::end_session(Connection& connection, Ender ender) {
  if (std::exchange(connection.finishing, true)) return;
  const bool survives = ender == Ender::server && context_->draining && has_journal();
  connection.session->end(survives || !place_.swarm.options.auto_release_on_disconnect);
}

// Beside the turns.

Duration Server::journal_turn() {
  const Duration next = log_->turn();
  release_held();
  return next;
}

bool Server::sweep() {
  if (!turned_ && engine_->now() < next_sweep_) return false;
  next_sweep_ = engine_->sweep();
  turn();
  turned_ = false;
  return true;
}

void Server::stop() {
  context_->draining = true;
  for (auto& [wire, connection] : connections_) {
    connection.session->drain(connection.out);
    touch(wire, connection);
  }
  turn();
  if (log_) log_->flush();
  release_held();
  for (auto& [wire, connection] : connections_) end_session(connection, Ender::server);
  turn();
  engine_->close();
  turn();
  if (log_) log_->flush();
  release_held();
}

void Server::die() {
  if (journal_) journal_->cut_off();
  place_.witness.look_away(true);
}

}  // namespace lockd::simulation
