// What operators of a cluster ask for. What this server knows, it answers itself, whoever leads;
// the acts are the leader's, and are done twice without harm.
//
// An act takes as long as etcd does, and may end this server's leadership: so it is answered when
// it has begun. When it is done, GET /v1/cluster shows.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/json_text.h"
#include "server/log.h"
#include "server/reports/report.h"
#include "server/session/api_calls.h"
#include "server/session/session_host.h"

namespace lockd {

bool ApiCalls::refuse_without_cluster(std::string& out) {
  if (context_.cluster != nullptr) return false;
  refuse({404, "not_found", "this server is in no cluster"}, out);
  return true;
}

void ApiCalls::inspect_cluster(RequestParams& params, std::string& out) {
  if (refuse_params(params, out) || refuse_without_cluster(out)) return;
  replies_.answer(200, cluster_report(context_.options, *context_.cluster), out);
}

void ApiCalls::begin_snapshot(RequestParams& params, std::string& out) {
  if (refuse_params(params, out) || refuse_without_cluster(out)) return;
  const ClusterStatus status = context_.cluster->status();  // before it has begun
  if (Journal::is_full(context_.engine.journal_state())) return refuse_hold(Outcome::storage, out);
  if (!context_.cluster->begin_snapshot()) return refuse_hold(Outcome::not_leader, out);
  log_event(LogLevel::warn, "a snapshot was asked for", {{"by", admin_name()}});
  JsonObject json;
  json.add("base", to_text(status.base));
  json.add("head", to_text(status.head));
  replies_.answer(202, json.finish(), out);
}

void ApiCalls::transfer(RequestParams& params, std::string& out) {
  const std::string node(params.name("node"));
  if (refuse_params(params, out) || refuse_without_cluster(out)) return;
  const ClusterStatus status = context_.cluster->status();
  JsonObject json;
  json.add("node_id", node);
  json.add("epoch", status.leader.epoch);
  if (status.leads && node == context_.options.node_id) {
    return replies_.answer(200, json.finish(), out);
  }
  if (status.leads && refuse_successor(status, node, out)) return;
  if (!context_.cluster->transfer(node)) return refuse_hold(Outcome::not_leader, out);
  log_event(LogLevel::warn, "hands over to another server, as an admin asked",
            {{"node", node}, {"by", admin_name()}});
  replies_.answer(202, json.finish(), out);
}

// Whether that server could not lead now; then it has been answered.
bool ApiCalls::refuse_successor(const ClusterStatus& status, const std::string& node,
                                std::string& out) {
  const auto& members = status.members;
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& member) { return member.record.node == node; });
  if (found == members.end()) {
    refuse({404, "not_found", "no server of this name was heard of within a minute"}, out);
    return true;
  }
  const Time now = context_.cluster->clock().now();
  if (now > found->last_seen + Membership::kRecent) {
    const auto silent = std::to_string(whole_ms(now - found->last_seen) / 1000);
    refuse({409, "not_ready", "it was last heard of " + silent + " s ago"}, out);
    return true;
  }
  if (found->record.is_ready()) return false;
  refuse({409, "not_ready", "it could not take over now: " + found->record.not_ready}, out);
  return true;
}

}  // namespace lockd
