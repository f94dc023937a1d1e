#include "cluster/cluster_gate.h"

#include <chrono>
#include <utility>

#include "cluster/proxy_session.h"
#include "server/session/session_host.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kTicksPerRound = 1s / Loop::kTick;

}  // namespace

ClusterGate::ClusterGate(Loop& loop, ServerContext& server, std::shared_ptr<ClusterLinks> links,
                         int number)
    : server_(server), links_(std::move(links)) {
  if (!server.options.forward || server.options.cluster_secret.empty()) return;
  dialer_ = std::make_unique<LeaderDialer>(loop, server, link_,
                                           server.options.node_id + '/' + std::to_string(number));
}

bool ClusterGate::follows() const {
  return server_.engine.journal_state() == Journal::State::following;
}

std::string ClusterGate::leader_address() const {
  const CurrentLeader leader = server_.cluster->status().leader;
  return leader.epoch == 0 ? "-" : leader.record.address;
}

std::string ClusterGate::leader_http_address() const {
  const CurrentLeader leader = server_.cluster->status().leader;
  return leader.epoch == 0 || leader.record.http.empty() ? "-" : leader.record.http;
}

// A client that has waited in vain is answered at once for as long again: it need not wait with
// each of its requests.
std::unique_ptr<ServerSession> ClusterGate::proxy(SessionContext& context, ServerSession& client,
                                                  ProxyRequest request) {
  if (dialer_ == nullptr || client.executor().caller().peer().is_forwarded() || !follows())
    return nullptr;
  const Duration timeout = server_.options.forward_timeout;
  const bool has_waited = client.found_no_leader() != Time{} &&
                          server_.engine.now() < client.found_no_leader() + timeout;
  if (!link_.is_up() && (has_waited || timeout == 0s)) return nullptr;
  ++server_.forwarding.opened;
  const auto now = Channel::Time::clock::now();
  const auto status = context.clients.status(client.id());
  const Duration ago = status ? status->connected : 0s;
  return std::make_unique<ProxySession>(
      context, client, std::move(request), link_,
      now - std::chrono::duration_cast<std::chrono::nanoseconds>(ago), now + timeout);
}

std::unique_ptr<ServerSession> ClusterGate::accept_link(SessionContext& context,
                                                        ServerSession& client) {
  if (server_.options.cluster_secret.empty() || client.executor().caller().peer().is_forwarded())
    return nullptr;
  return std::make_unique<LinkSession>(context, client, *links_, accepted_);
}

void ClusterGate::tick() {
  const auto now = Channel::Time::clock::now();
  if (dialer_ != nullptr) {
    links_->ids.reserve(link_clock_ms(now));
    dialer_->tick();
  }
  if (++ticks_ % kTicksPerRound != 0) return;
  for (LinkSession* link : accepted_) link->tick(now);
}

void ClusterGate::end_turn() {
  if (dialer_ != nullptr) dialer_->flush();
}

MakeGate make_cluster_gates() {
  struct Made {
    std::shared_ptr<ClusterLinks> links;
    int gates = 0;
  };
  return [made = std::make_shared<Made>()](Loop& loop, ServerContext& server) {
    if (made->links == nullptr) made->links = std::make_shared<ClusterLinks>(server.last_session);
    return std::make_unique<ClusterGate>(loop, server, made->links, made->gates++);
  };
}

}  // namespace lockd
