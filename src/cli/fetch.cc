#include "cli/fetch.h"

#include <utility>

#include "cli/failure.h"
#include "lockd/client/connection.h"

namespace lockd::cli {

std::unique_ptr<HttpClient> require_http(const Invocation& invocation) {
  if (invocation.settings.http) {
    return std::make_unique<HttpClient>(*invocation.settings.http, invocation.settings.connect);
  }
  throw Failure(kExitConfig,
                "lockctl " + std::string(invocation.command.name) +
                    " needs the server's HTTP port: give --http HOST:PORT, set DFLOCKD_HTTP_ADDR, "
                    "or write http = \"HOST:PORT\" into lockd.toml");
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
