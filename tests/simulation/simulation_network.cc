// The network of the simulated world: wires that delay, split, and break.
#include <chrono>
#include <utility>

#include "simulation/simulation.h"

namespace lockd::simulation {

using namespace std::chrono_literals;

Duration Simulation::delay() {
  if (swarm_.delay_max == Duration::zero() || healed_) return 10us;
  return chance_.below(swarm_.delay_max);
}

Wire* Simulation::connect(std::uint32_t client, bool is_http) {
  if (server_ == nullptr || (server_->is_draining() && !is_http)) return nullptr;
  const std::uint64_t id = ++last_wire_;
  wires_[id] =
      std::make_unique<Wire>(Wire{.id = id, .client = client, .is_http = is_http, .life = life_});
  server_->open(id, is_http);
  trace("client", client, "opens wire", id);
  return wires_[id].get();
}

void Simulation::send(Wire& wire, std::string_view bytes) {
  trace("client", wire.client, "says on", wire.id, bytes);
  transmit(wire, true, bytes);
}

void Simulation::send_end(Wire& wire) {
  trace("client", wire.client, "ends", wire.id);
  close(wire, true, Segment::What::end);
}

void Simulation::reset(Wire& wire) {
  trace("client", wire.client, "resets", wire.id);
  wire.to_server.drop();
  wire.to_client.drop();
  close(wire, true, Segment::What::reset);
  wire.client_gone = true;
}

void Simulation::transmit(Wire& wire, bool to_server, std::string_view bytes) {
  if (to_server ? wire.client_closed : wire.server_closed || wire.client_gone) return;
  const What what = to_server ? What::to_server : What::to_client;
  Line& line = to_server ? wire.to_server : wire.to_client;
  while (!bytes.empty()) {
    const std::size_t size =
        swarm_.splits && chance_.percent(50) ? 1 + chance_.below(bytes.size()) : bytes.size();
    const Time due = line.send(now_ + delay(), Segment::What::bytes, bytes.substr(0, size));
    bytes.remove_prefix(size);
    agenda_.enter(due, what, wire.id);
  }
}

void Simulation::close(Wire& wire, bool to_server, Segment::What how) {
  bool& closed = to_server ? wire.client_closed : wire.server_closed;
  if (std::exchange(closed, true)) return;
  Line& line = to_server ? wire.to_server : wire.to_client;
  const Time due = line.send(now_ + delay(), how);
  agenda_.enter(due, to_server ? What::to_server : What::to_client, wire.id);
}

void Simulation::deliver_to_server(std::uint64_t id) {
  const auto found = wires_.find(id);
  if (found == wires_.end()) return;
  Wire& wire = *found->second;
  while (wire.to_server.is_due(now_)) {
    const Segment segment = wire.to_server.take();
    if (server_ == nullptr || wire.life != life_) continue;
    switch (segment.what) {
      case Segment::What::bytes: server_->receive(id, segment.bytes); break;
      case Segment::What::end: server_->receive_end(id); break;
      case Segment::What::reset: server_->receive_reset(id); break;
    }
    if (segment.what == Segment::What::reset) check();
    have_turn();
  }
  drop_if_over(id);
}

void Simulation::deliver_to_client(std::uint64_t id) {
  const auto found = wires_.find(id);
  if (found == wires_.end()) return;
  Wire& wire = *found->second;
  Client& client = *clients_[wire.client];
  while (wire.to_client.is_due(now_)) {
    const Segment segment = wire.to_client.take();
    if (wire.client_gone || client.wire() != &wire) continue;
    if (segment.what == Segment::What::bytes) {
      trace("client", wire.client, "hears on", id, segment.bytes);
      client.receive(segment.bytes);
    } else {
      trace("client", wire.client, "hears the end of", id);
      client.receive_end();
      wire.client_gone = true;
      close(wire, true, Segment::What::end);
    }
  }
  let_act(wire.client, delay());
  drop_if_over(id);
}

void Simulation::drop_if_over(std::uint64_t id) {
  const Wire& wire = *wires_.at(id);
  const bool client_is_done = wire.client_gone || clients_[wire.client]->wire() != &wire;
  const bool server_is_done =
      wire.life != life_ || server_ == nullptr || (wire.server_closed && wire.to_server.empty());
  if (client_is_done && server_is_done) wires_.erase(id);
}

}  // namespace lockd::simulation
