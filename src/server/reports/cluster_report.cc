// What a server of a cluster tells of it.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/json_text.h"
#include "base/text.h"
#include "replication/cluster_journal.h"
#include "replication/shared_settings.h"
#include "server/reports/report.h"
#include "server/server_context.h"
#include "server/settings/options.h"

namespace lockd {
namespace {

// What is in etcd may be any bytes, and of any length.
constexpr std::size_t kProblemMax = 1024;

double seconds_since(Time since, Time now) {
  return seconds(now > since ? now - since : Duration::zero());
}

JsonObject member_json(const Member& member, Time now) {
  JsonObject json;
  json.add("node_id", member.record.node);
  json.add("addr", member.record.address);
  json.add("role", member.record.leads ? "leader" : "follower");
  json.add("applied", member.record.applied);
  json.add("behind", member.record.behind);
  json.add("ready", member.record.is_ready());
  json.add_if_known("version", member.record.program);
  json.add("silent_s", seconds_since(member.last_seen, now));
  return json;
}

// By the names of the flags, and as they are written there.
std::string settings_json(const std::string& text) {
  JsonObject json;
  for (const auto& [name, value] : shared_settings_in(text).value_or(SharedSettings{})) {
    json.add(name, value);
  }
  return json.finish();
}

// Who this server is in its cluster.
JsonObject role_json(const Options& options, const ClusterStatus& status) {
  JsonObject json;
  json.add("node_id", options.node_id);
  json.add("role", status.leads ? "leader" : "follower");
  json.add("certain", status.certain);
  json.add("epoch", status.leader.epoch);
  return json;
}

std::string leader_json(const LeaderRecord& leader) {
  JsonObject json;
  json.add("node_id", leader.node);
  json.add("addr", leader.address);
  json.add_if_known("http_addr", leader.http);
  json.add("writes_version", leader.version);
  return json.finish();
}

std::string problem_text(const ClusterStatus& status) {
  const std::size_t size = std::min(status.unreadable.size(), kProblemMax);
  return as_utf8(std::string_view(status.unreadable).substr(0, size));
}

std::string unreadable_json(const ClusterStatus& status) {
  JsonObject json;
  if (!status.unreadable_batch.is_none()) json.add("batch", to_text(status.unreadable_batch));
  json.add("why", problem_text(status));
  return json.finish();
}

std::string etcd_json(const ClusterStatus& status, const ReplicationStats& stats, Time now) {
  JsonObject json;
  if (status.answered != Time{}) json.add("silent_s", seconds_since(status.answered, now));
  json.add("revision", status.revision);
  json.add("bytes", stats.store_bytes.load());
  json.add("needed_bytes", stats.store_bytes_needed.load());
  json.add("quota_bytes", stats.store_quota_bytes.load());
  return json.finish();
}

}  // namespace

std::string cluster_json(const ServerContext& shared) {
  const ClusterJournal& cluster = *shared.cluster;
  const ClusterStatus status = cluster.status();
  JsonObject json = role_json(shared.options, status);
  json.add("leader", status.leader.epoch == 0 ? "-" : status.leader.record.node);
  json.add("leader_addr", status.leader.epoch == 0 ? "-" : status.leader.record.address);
  json.add("applied", status.applied);
  json.add("behind", status.behind);
  json.add_json("settings", settings_json(status.settings));
  JsonArray differing;
  for (const SettingDifference& one : differences(status.settings, status.own_settings)) {
    append_json_string(differing.next(), one.name);
  }
  json.add_json("settings_differ", differing.finish());
  const Time now = cluster.clock().now();
  json.add("lag_s", seconds_since(status.lags_since.value_or(now), now));
  if (status.answered != Time{}) json.add("etcd_silent_s", seconds_since(status.answered, now));
  json.add("etcd_bytes", cluster.stats().store_bytes.load());
  json.add("etcd_quota_bytes", cluster.stats().store_quota_bytes.load());
  json.add_if_known("not_ready", status.not_ready);
  if (!status.unreadable.empty()) json.add("unreadable", problem_text(status));
  if (!status.leads && shared.options.forward && !shared.options.cluster_secret.empty()) {
    json.add("linked", shared.forwarding.links != 0);
  }
  JsonArray nodes;
  for (const Member& member : status.members) nodes.add_json(member_json(member, now).finish());
  json.add_json("nodes", nodes.finish());
  return json.finish();
}

std::string cluster_report(const Options& options, const ClusterJournal& cluster) {
  const ClusterStatus status = cluster.status();
  const Time now = cluster.clock().now();
  JsonObject json = role_json(options, status);
  json.add_if_known("not_ready", status.not_ready);
  if (status.leader.epoch != 0) json.add_json("leader", leader_json(status.leader.record));
  json.add("base", to_text(status.base));
  json.add("head", to_text(status.head));
  json.add("last_batch", to_text(status.last_batch));
  json.add("applied", status.applied);
  json.add("behind", status.behind);
  if (!status.unreadable.empty()) json.add_json("unreadable", unreadable_json(status));
  json.add("reads_version", kChainVersion);
  json.add_json("settings", settings_json(status.settings));
  json.add_json("own_settings", settings_json(status.own_settings));
  json.add_json("etcd", etcd_json(status, cluster.stats(), now));
  JsonArray nodes;
  for (const Member& member : status.members) {
    JsonObject node = member_json(member, now);
    node.add("reads_version", member.record.version);
    node.add_if_known("not_ready", member.record.not_ready);
    nodes.add_json(node.finish());
  }
  json.add_json("nodes", nodes.finish());
  return json.finish();
}

}  // namespace lockd
