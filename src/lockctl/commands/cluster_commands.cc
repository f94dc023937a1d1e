// cluster status: what each server of a cluster says of itself.
#include <boost/json/serialize.hpp>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "lockctl/api/json.h"
#include "lockctl/commands/commands.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockd/client/client.h"

namespace lockd::cli {

namespace json = boost::json;

namespace {

// What one of them has answered.
struct Told {
  std::string failure{};  // empty: it has
  json::value overview{};
};

Told ask(const client::Address& server, const Settings& settings) {
  auto connection = client::Connection::open(server, settings.connect);
  if (!connection) return {failure_of(connection).what()};
  const auto answer = connection->api({.method = "GET", .path = "/v1/overview"});
  if (!answer) return {failure_of(answer).what()};
  Told told{.overview = parse_json(answer->json, server.to_string())};
  if (answer->status != 200) told.failure = text_of(told.overview, "error");
  return told;
}

const json::value& cluster_of(const Told& told) {
  static const json::value none{};
  const json::value* const cluster = member(told.overview, "cluster");
  return cluster == nullptr ? none : *cluster;
}

// A leader that is cut off from etcd cannot be sure that nobody else leads by now.
std::string role_of(const Told& told) {
  const json::value& cluster = cluster_of(told);
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

std::vector<std::string> row_of(const client::Address& server, const Told& told) {
  if (!told.failure.empty()) return {server.to_string(), "-", "-", "", "", "", "", told.failure};
  const json::value& cluster = cluster_of(told);
  return {server.to_string(),
          text_of(cluster, "node_id"),
          role_of(told),
          std::to_string(number_of(cluster, "epoch")),
          std::to_string(number_of(cluster, "behind")),
          truth_of(told.overview, "ready") ? "yes" : "no",
          text_of(told.overview, "version"),
          notes_on(cluster)};
}

std::string json_of(const client::Address& server, const Told& told) {
  JsonObject json;
  json.add("server", server.to_string());
  if (!told.failure.empty()) {
    json.add("error", as_utf8(told.failure));
    return json.finish();
  }
  json.add("version", as_utf8(text_of(told.overview, "version")));
  json.add("ready", truth_of(told.overview, "ready"));
  json.add_json("cluster", json::serialize(cluster_of(told)));
  return json.finish();
}

}  // namespace

int execute_cluster_status(const Invocation& invocation) {
  Table table({"SERVER", "NODE", "ROLE", "EPOCH>", "BEHIND>", "READY", "VERSION", "?"});
  std::size_t leaders = 0;
  std::size_t ready = 0;
  for (const client::Address& server : invocation.settings.servers) {
    const Told told = ask(server, invocation.settings);
    leaders += told.failure.empty() && role_of(told) == "leader";
    ready += told.failure.empty() && truth_of(told.overview, "ready");
    if (invocation.arguments.has("json")) {
      invocation.output.line(json_of(server, told));
    } else {
      table.add(row_of(server, told));
    }
  }
  if (!table.empty()) invocation.output.write(table.text(invocation.output.style()));
  const std::size_t servers = invocation.settings.servers.size();
  if (leaders == 1 && ready == servers) return kExitOk;
  throw Failure(kExitTemporary, std::to_string(leaders) + " of " + std::to_string(servers) +
                                    " servers certainly lead, " + std::to_string(ready) +
                                    " are ready");
}

}  // namespace lockd::cli
