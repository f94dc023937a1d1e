#include "service/stateless_calls.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/log.h"
#include "service/refusals.h"

namespace lockd {
namespace {

// Why the server `node` could not lead now.
std::optional<Reply> refuse_successor(const SessionContext& context, const ClusterStatus& status,
                                      std::string_view node) {
  const auto found = std::ranges::find_if(
      status.members, [&](const Member& member) { return member.record.node == node; });
  if (found == status.members.end()) return reject(Rejected::Reason::no_such_server);
  const Time now = context.cluster->clock().now();
  if (now > found->last_seen + Membership::kRecent) {
    const auto silent = std::to_string(whole_ms(now - found->last_seen) / 1000);
    return reject(Rejected::Reason::server_not_ready, "it was last heard of " + silent + " s ago");
  }
  if (found->record.is_ready()) return {};
  return reject(Rejected::Reason::server_not_ready,
                "it could not take over now: " + found->record.not_ready);
}

}  // namespace

// Holds.

Reply execute_stateless(SessionContext& context, const Caller&, const Renew& call) {
  std::size_t missing = 0;
  const Answer answer = context.batch.renew(call.hold, call.ttl, &missing);
  if (answer.outcome == Outcome::ok) return Renewed{answer.grant};
  Refused reply = refuse(context, answer.outcome);
  const bool names_key = answer.outcome == Outcome::expired || answer.outcome == Outcome::stale ||
                         answer.outcome == Outcome::not_holder;
  if (names_key) reply.missing = missing;
  return reply;
}

Reply execute_stateless(SessionContext& context, const Caller&, const Release& call) {
  const ReleaseResult result = context.batch.release(call.hold);
  return result ? Reply(Released{result}) : Reply(refuse(context, result.outcome));
}

Reply execute_stateless(SessionContext& context, const Caller&, const ConfirmLeadership&) {
  if (context.gate.follows()) return refuse(context, Outcome::not_leader);
  context.gate.confirm(context.batch);
  return Done{};
}

// Only the leader knows the last grant.
Reply execute_stateless(SessionContext& context, const Caller&, const ReadFence& call) {
  if (context.gate.follows()) return refuse(context, Outcome::not_leader);
  context.gate.confirm(context.batch);
  return FenceFound{context.batch.fence(call.key)};
}

// Administration.

Reply execute_stateless(SessionContext& context, const Caller& caller, const Revoke& call) {
  const std::string by = caller.admin_name();
  RevokeResult revoked = context.batch.revoke(
      {.key = call.key, .fence = call.fence, .kind = call.kind, .reason = call.reason, .by = by});
  if (!revoked) return refuse(context, revoked.outcome);
  const HoldStatus& first = revoked.holds.front();
  log_event(LogLevel::warn, "hold revoked",
            {{"key", call.key},
             {"holds", revoked.count},
             {"holder", first.holder},
             {"client", first.client == nullptr ? "" : first.client->name},
             {"fence", first.fence},
             {"held_ms", whole_ms(first.held)},
             {"by", by},
             {"reason", call.reason}});
  return Revoked{std::move(revoked)};
}

Reply execute_stateless(SessionContext& context, const Caller& caller, const Resize& call) {
  const std::string by = caller.admin_name();
  const Outcome outcome = context.batch.resize(call.key, call.limit, call.reason, by);
  if (outcome != Outcome::ok) return refuse(context, outcome);
  log_event(LogLevel::warn, "resized",
            {{"key", call.key}, {"limit", call.limit}, {"by", by}, {"reason", call.reason}});
  return Done{};
}

void record_disconnect(SessionContext& context, const ClientStatus& client, std::string_view reason,
                       std::string_view by) {
  const std::string name = client.client == nullptr ? "" : client.client->name;
  log_event(LogLevel::warn, "client disconnected by admin",
            {{"client_id", client.id},
             {"client", name},
             {"peer", client.peer},
             {"by", by},
             {"reason", reason}});
  if (context.history == nullptr) return;
  context.history->add({.type = ServerEvent::Type::kicked,
                        .client_id = client.id,
                        .protocol = name_of(client.protocol),
                        .peer = client.peer,
                        .client = name,
                        .reason = std::string(reason),
                        .by = std::string(by)});
}

Reply execute_stateless(SessionContext& context, const Caller&, const InspectCluster&) {
  if (context.cluster == nullptr) return reject(Rejected::Reason::no_cluster);
  return ClusterReport{cluster_report(context.options, *context.cluster)};
}

Reply execute_stateless(SessionContext& context, const Caller& caller, const BeginSnapshot&) {
  if (context.cluster == nullptr) return reject(Rejected::Reason::no_cluster);
  const ClusterStatus before = context.cluster->status();
  if (Journal::is_full(context.engine.journal_state())) return refuse(context, Outcome::storage);
  if (!context.cluster->begin_snapshot()) return refuse(context, Outcome::not_leader);
  log_event(LogLevel::warn, "snapshot requested", {{"by", caller.admin_name()}});
  return SnapshotBegun{before.base, before.head};
}

Reply execute_stateless(SessionContext& context, const Caller& caller,
                        const TransferLeadership& call) {
  if (context.cluster == nullptr) return reject(Rejected::Reason::no_cluster);
  const ClusterStatus status = context.cluster->status();
  if (status.leads && call.node == context.options.node_id) {
    return TransferBegun{.epoch = status.leader.epoch, .already_leads = true};
  }
  if (status.leads) {
    if (std::optional<Reply> no = refuse_successor(context, status, call.node)) return *no;
  }
  if (!context.cluster->transfer(std::string(call.node))) {
    return refuse(context, Outcome::not_leader);
  }
  log_event(LogLevel::warn, "leadership transfer requested",
            {{"node", call.node}, {"by", caller.admin_name()}});
  return TransferBegun{.epoch = status.leader.epoch};
}

Reply execute_stateless(SessionContext& context, const Caller&, const CheckHealth& call) {
  if (call.of == CheckHealth::Of::process) return Health{};
  if (call.of == CheckHealth::Of::leader && context.gate.follows()) return Health{"not_leader"};
  const std::string_view problem = why_not_ready(context.draining, context.engine, context.cluster);
  // The reply must wait until the server has proved that it still leads.
  if (call.of == CheckHealth::Of::leader && problem.empty()) context.gate.confirm(context.batch);
  return Health{problem};
}

}  // namespace lockd
