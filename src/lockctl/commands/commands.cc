#include "lockctl/commands/commands.h"

#include <utility>

#include "lockctl/output/failure.h"
#include "lockd/client/client.h"
#include "lockd/client/connection.h"

namespace lockd::cli {

std::optional<std::chrono::seconds> whole_seconds(const Arguments& arguments,
                                                  std::string_view option) {
  const auto time = arguments.seconds(option);
  if (!time) return std::nullopt;
  const auto whole = std::chrono::floor<std::chrono::seconds>(*time);
  if (whole == *time) return whole;
  throw Failure(kExitUsage, "--" + std::string(option) + ": whole seconds, over the line port");
}

std::unique_ptr<HttpCluster> require_http(const Invocation& invocation) {
  if (!invocation.settings.http.empty()) {
    return std::make_unique<HttpCluster>(invocation.settings.http, invocation.settings.connect);
  }
  throw Failure(kExitConfig,
                invocation.place.path +
                    " needs the server's HTTP port: give --http HOST:PORT, set LOCKD_HTTP_ADDR, "
                    "or write http = \"HOST:PORT\" into lockd.toml");
}

std::vector<client::Address> servers_to_ask(const Settings& settings, std::stop_token stop) {
  if (!settings.is_cluster) return settings.servers;
  client::Client client(settings.client());
  require(client.connect("", std::move(stop)));
  return {client.server_of("")};
}

std::string fetch_stats(const Settings& settings, const client::Address& server,
                        std::stop_token stop) {
  auto connection = client::Connection::open(server, settings.connect, stop);
  require(connection);
  auto stats = connection->stats(std::move(stop));
  require(stats);
  return std::move(*stats);
}

}  // namespace lockd::cli
