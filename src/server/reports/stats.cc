#include "server/reports/stats.h"

#include <string>

#include "base/json_text.h"
#include "server/milliseconds.h"

namespace lockd {
namespace {

// To the millisecond, as seconds.
double seconds(Duration duration) { return static_cast<double>(whole_ms(duration)) / 1000; }

std::string lock_json(const KeyStatus& key) {
  const HoldStatus hold = key.holds.empty() ? HoldStatus{} : key.holds[0];
  JsonObject json;
  json.add("key", key.key);
  json.add("owner_conn_id", hold.session);
  json.add("lease_expires_in_s", seconds(hold.remaining));
  json.add("waiters", key.waiters);
  return json.finish();
}

std::string semaphore_json(const KeyStatus& key) {
  JsonObject json;
  json.add("key", key.key);
  json.add("limit", key.limit);
  json.add("holders", key.holders);
  json.add("waiters", key.waiters);
  return json.finish();
}

std::string idle_json(const KeyStatus& key) {
  JsonObject json;
  json.add("key", key.key);
  json.add("idle_s", seconds(key.idle));
  return json.finish();
}

std::string member_json(const Member& member, Time now) {
  JsonObject json;
  json.add("node_id", member.record.node);
  json.add("addr", member.record.address);
  json.add("role", member.record.leads ? "leader" : "follower");
  json.add("applied", member.record.applied);
  json.add("behind", member.record.behind);
  json.add("silent_s", seconds(now > member.heard ? now - member.heard : Duration::zero()));
  return json.finish();
}

}  // namespace

std::string audience_json(const AudienceStatus& audience) {
  JsonObject json;
  json.add("pattern", audience.pattern);
  if (!audience.group.empty()) json.add("group", audience.group);
  json.add("listeners", audience.listeners);
  return json.finish();
}

std::string cluster_json(const ClusterJournal& cluster, std::string_view node_id) {
  const ClusterStatus status = cluster.status();
  JsonObject json;
  json.add("node_id", node_id);
  json.add("role", status.leads ? "leader" : "follower");
  json.add("epoch", status.leader.epoch);
  json.add("leader_addr", status.leader.epoch == 0 ? "-" : status.leader.record.address);
  json.add("applied", status.applied);
  json.add("behind", status.behind);
  JsonArray nodes;
  const Time now = cluster.clock().now();
  for (const Member& member : status.members) nodes.add_json(member_json(member, now));
  json.add_json("nodes", nodes.finish());
  return json.finish();
}

ReportResult stats_json(Engine& engine, const SignalHub& hub, std::uint64_t connections,
                        const ClusterJournal* cluster, std::string_view node_id) {
  JsonArray locks;
  JsonArray semaphores;
  JsonArray idle_locks;
  JsonArray idle_semaphores;
  const Position position = engine.list(
      [&](const KeyStatus& key) {
        const bool lock = key.kind == Kind::lock;
        if (key.holders == 0 && key.waiters == 0) {
          (lock ? idle_locks : idle_semaphores).add_json(idle_json(key));
        } else if (lock) {
          locks.add_json(lock_json(key));
        } else {
          semaphores.add_json(semaphore_json(key));
        }
      },
      1);
  JsonArray channels;
  for (const AudienceStatus& audience : hub.list()) channels.add_json(audience_json(audience));
  JsonObject json;
  json.add("connections", connections);
  json.add_json("locks", locks.finish());
  json.add_json("semaphores", semaphores.finish());
  json.add_json("idle_locks", idle_locks.finish());
  json.add_json("idle_semaphores", idle_semaphores.finish());
  json.add_json("signal_channels", channels.finish());
  if (cluster != nullptr) json.add_json("cluster", cluster_json(*cluster, node_id));
  return {json.finish(), position};
}

}  // namespace lockd
