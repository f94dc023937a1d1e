// Where the server is and how to talk to it: from options, variables and lockd.toml.
//
// The command line wins over the environment, the environment over the file, the file over the
// defaults (see config/settings.h). Called once, by the first thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/arguments.h"
#include "config/environment.h"
#include "lockd/client/address.h"
#include "lockd/client/client.h"
#include "lockd/client/connection.h"

namespace lockd::cli {

struct HttpAddress {
  client::Address address{};
  bool tls = false;

  // "http://127.0.0.1:8080"
  std::string to_string() const;
};

struct Settings {
  std::vector<client::Address> servers{client::Address{}};
  bool is_cluster = false;  // the servers are one cluster; otherwise they share the keys
  client::ConnectOptions connect{};
  // None: the API is asked over the line port. One; or those of one cluster's servers.
  std::vector<HttpAddress> http{};

  // For the line port.
  client::ClientOptions client() const;

  std::vector<HttpAddress> http_servers{};  // of bench --http, which has them for servers
};

// Throws Failure, with a line that names the setting, the value and what it takes; also when a
// variable is set that lockctl read once, and its successor is not.
Settings load_settings(const config::Arguments& arguments, const config::Environment& environment);

// "host:port", ":port", with http:// or https:// before it; `tls` where that is not said. No host,
// and the address of a server that listens everywhere, are this machine's.
std::optional<HttpAddress> parse_http_address(std::string_view text, bool tls);

}  // namespace lockd::cli
