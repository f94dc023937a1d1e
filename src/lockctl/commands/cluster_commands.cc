// cluster status, cluster inspect: what each server of a cluster says of itself, and of the chain.
#include <boost/json/serialize.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "lockctl/api/api.h"
#include "lockctl/api/json.h"
#include "lockctl/commands/commands.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"

namespace lockd::cli {

namespace json = boost::json;

namespace {

// What one of them has answered.
struct Told {
  std::string failure{};  // empty: it has
  json::value overview{};
};

Told ask(Api& api) {
  try {
    const ApiReply reply = api.get("/v1/overview", {{"local", true}});
    require(reply);
    return {.overview = parse_json(reply.body, api.server())};
  } catch (const Failure& failure) {
    if (failure.code() == kExitIo) throw;
    return {failure.what()};
  }
}

// Null when there is none.
const json::value& part_of(const json::value& object, std::string_view name) {
  static const json::value none{};
  const json::value* const found = member(object, name);
  return found == nullptr ? none : *found;
}

const json::value& cluster_of(const Told& told) { return part_of(told.overview, "cluster"); }

// A leader that is cut off from etcd cannot be sure that nobody else leads by now.
std::string role_of(const json::value& cluster) {
  const std::string role = text_of(cluster, "role");
  if (role.empty()) return "in no cluster";
  return role == "leader" && !truth_of(cluster, "certain") ? "leader, uncertain" : role;
}

// Which of its settings are not those of the leader, which are in force.
std::string notes_on(const json::value& cluster) {
  const json::value* const differ = member(cluster, "settings_differ");
  std::string notes;
  if (differ == nullptr || !differ->is_array()) return notes;
  for (const json::value& name : differ->get_array()) {
    if (!name.is_string()) continue;
    notes += notes.empty() ? "other settings: " : ", ";
    notes += std::string_view(name.get_string());
  }
  return notes;
}

std::string ready_text(const Told& told) {
  if (truth_of(told.overview, "ready")) return "yes";
  const std::string why = text_of(cluster_of(told), "not_ready");
  return why.empty() ? "no" : "no: " + why;
}

// "12.4 MB of 4,295.0 MB": of one member.
std::string store_text(const json::value& cluster) {
  const auto megabytes = [&](std::string_view name) {
    const std::uint64_t tenths = (number_of(cluster, name) + 50'000) / 100'000;
    return grouped(tenths / 10) + '.' + std::to_string(tenths % 10) + " MB";
  };
  if (!has(cluster, "etcd_bytes")) return "-";  // it is too old to say
  if (!has(cluster, "etcd_silent_s")) return "no answer";
  if (number_of(cluster, "etcd_bytes") == 0) return "-";
  const bool has_quota = number_of(cluster, "etcd_quota_bytes") > 0;
  return megabytes("etcd_bytes") + (has_quota ? " of " + megabytes("etcd_quota_bytes") : "");
}

std::vector<std::string> row_of(const std::string& server, const Told& told) {
  if (!told.failure.empty()) return {server, "-", "-", "", "", "", "", "", told.failure};
  const json::value& cluster = cluster_of(told);
  return {server,
          text_of(cluster, "node_id"),
          role_of(cluster),
          std::to_string(number_of(cluster, "epoch")),
          std::to_string(number_of(cluster, "behind")),
          ready_text(told),
          store_text(cluster),
          text_of(told.overview, "version"),
          notes_on(cluster)};
}

std::string json_of(const std::string& server, const Told& told) {
  JsonObject json;
  json.add("server", server);
  if (!told.failure.empty()) {
    json.add("error", as_utf8(told.failure));
    return json.finish();
  }
  json.add("version", as_utf8(text_of(told.overview, "version")));
  json.add("ready", truth_of(told.overview, "ready"));
  json.add_json("cluster", json::serialize(cluster_of(told)));
  return json.finish();
}

// --- inspect ---

// {"server":"10.0.0.11:6388",...}, with all that it has said.
std::string inspected_json(const std::string& server, json::value told) {
  json::object all{{"server", as_utf8(server)}};
  if (told.is_object()) {
    for (auto& [name, value] : told.as_object()) all.insert_or_assign(name, std::move(value));
  }
  return json::serialize(all);
}

std::string bytes_text(const json::value& object, std::string_view name) {
  const std::uint64_t bytes = number_of(object, name);
  return bytes == 0 ? "unknown" : grouped(bytes) + " bytes";
}

std::string leader_text(const json::value& told) {
  const json::value& leader = part_of(told, "leader");
  if (leader.is_null()) return "nobody";
  return text_of(leader, "node_id") + " at " + text_of(leader, "addr") + ", epoch " +
         std::to_string(number_of(told, "epoch")) + ", writes version " +
         std::to_string(number_of(leader, "writes_version"));
}

std::string node_text(const json::value& node) {
  const std::string why = text_of(node, "not_ready");
  return text_of(node, "node_id") + " at " + text_of(node, "addr") + ", " + text_of(node, "role") +
         ", reads version " + std::to_string(number_of(node, "reads_version")) + ", " +
         std::to_string(number_of(node, "behind")) + " behind, heard " +
         human(seconds_of(node, "silent_s")) + " ago" + (why.empty() ? "" : ", not ready: " + why);
}

std::string role_text(const json::value& told) {
  const std::string why = text_of(told, "not_ready");
  return role_of(told) + (why.empty() ? "" : ", not ready: " + why);
}

// "etcd-detect=2 max-locks=1024"
std::string settings_text(const json::value& told, std::string_view which) {
  std::string text;
  const json::value& settings = part_of(told, which);
  if (!settings.is_object()) return text;
  for (const auto& [name, value] : settings.as_object()) {
    if (value.is_string()) text += (text.empty() ? "" : " ") + std::string(name) + '=';
    if (value.is_string()) text += value.as_string();
  }
  return text;
}

void print_inspected(Output& output, const std::string& server, const json::value& told) {
  const auto line = [&](std::string_view name, const std::string& text) {
    std::string padded(name);
    padded.resize(12, ' ');
    output.line("  " + padded + printable(text));
  };
  const json::value& etcd = part_of(told, "etcd");
  output.line(output.style().bold(printable(server)));
  line("node", text_of(told, "node_id") + ", " + role_text(told) + ", reads version " +
                   std::to_string(number_of(told, "reads_version")));
  line("leader", leader_text(told));
  line("chain", text_of(told, "base") + " to " + text_of(told, "head"));
  line("applied", text_of(told, "last_batch") + ", position " +
                      std::to_string(number_of(told, "applied")) + ", revision " +
                      std::to_string(number_of(etcd, "revision")) + ", " +
                      std::to_string(number_of(told, "behind")) + " behind");
  if (const json::value& unreadable = part_of(told, "unreadable"); !unreadable.is_null()) {
    output.line("  " + output.style().red("unreadable") + "  " +
                printable(text_of(unreadable, "why")));
  }
  line("etcd",
       "takes " + bytes_text(etcd, "bytes") + ", needs " + bytes_text(etcd, "needed_bytes") +
           ", quota " + bytes_text(etcd, "quota_bytes") +
           (has(etcd, "silent_s") ? ", answered " + human(seconds_of(etcd, "silent_s")) + " ago"
                                  : ", has not answered"));
  line("settings", settings_text(told, "settings"));
  if (settings_text(told, "own_settings") != settings_text(told, "settings")) {
    line("its own", settings_text(told, "own_settings"));
  }
  for (const json::value& node : array_of(told, "nodes")) line("server", node_text(node));
}

}  // namespace

int execute_cluster_status(const Invocation& invocation) {
  Table table({"SERVER", "NODE", "ROLE", "EPOCH>", "BEHIND>", "READY", "ETCD", "VERSION", "?"});
  const auto apis = each_api_of(invocation);
  std::size_t leaders = 0;
  std::size_t ready = 0;
  std::set<std::uint64_t> epochs;
  for (const std::unique_ptr<Api>& api : apis) {
    const Told told = ask(*api);
    leaders += told.failure.empty() && role_of(cluster_of(told)) == "leader";
    ready += told.failure.empty() && truth_of(told.overview, "ready");
    if (told.failure.empty()) epochs.insert(number_of(cluster_of(told), "epoch"));
    if (invocation.arguments.has("json")) {
      invocation.output.line(json_of(api->server(), told));
    } else {
      table.add(row_of(api->server(), told));
    }
  }
  if (!table.empty()) invocation.output.write(table.text(invocation.output.style()));
  const std::size_t servers = apis.size();
  if (leaders == 1 && ready == servers && epochs.size() == 1) return kExitOk;
  if (epochs.size() > 1) {
    throw Failure(kExitTemporary, "the servers are of " + std::to_string(epochs.size()) +
                                      " epochs: not all follow the same leader");
  }
  throw Failure(kExitTemporary, std::to_string(leaders) + " of " + std::to_string(servers) +
                                    " servers certainly lead, " + std::to_string(ready) +
                                    " are ready");
}

int execute_cluster_inspect(const Invocation& invocation) {
  const bool as_json = invocation.arguments.has("json");
  std::size_t unreadable = 0;
  std::string failures;
  for (const std::unique_ptr<Api>& api : each_api_of(invocation)) {
    try {
      const ApiReply reply = api->get("/v1/cluster");
      require(reply);
      json::value told = parse_json(reply.body, api->server());
      unreadable += has(told, "unreadable");
      if (as_json) {
        invocation.output.line(inspected_json(api->server(), std::move(told)));
      } else {
        print_inspected(invocation.output, api->server(), told);
      }
    } catch (const Failure& failure) {
      if (failure.code() == kExitNoPermission || failure.code() == kExitIo) throw;
      failures += (failures.empty() ? "" : "; ") + api->server() + ": " + failure.what();
    }
  }
  if (unreadable > 0) {
    throw Failure(kExitData, std::to_string(unreadable) +
                                 " of them cannot read the chain: see lockctl cluster snapshot");
  }
  if (!failures.empty()) throw Failure(kExitTemporary, failures);
  return kExitOk;
}

}  // namespace lockd::cli
