// Where the server is and how to talk to it: from options, variables and lockd.toml.
//
// The command line wins over the environment, the environment over the file, the file over the
// defaults. Every value that counts must be valid; one that another wins over is not looked at.
// Called once, by the first thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockctl/arguments.h"
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
  std::vector<HttpAddress> http{};  // none; one; or those of one cluster's servers

  // For the line port.
  client::ClientOptions client() const;

  std::vector<HttpAddress> http_servers{};  // of bench --http, which has them for servers
};

// The doors to the environment, so that tests can pass their own.
struct Environment {
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // Nothing when there is no such file. Throws Failure when it cannot be read.
  std::function<std::optional<std::string>(const std::string& path)> file;
};

Environment process_environment();

// Throws Failure, with a line that names the setting, the value and what it takes.
Settings load_settings(const Arguments& arguments, const Environment& environment);

// "host:port", ":port", with http:// or https:// before it; `tls` where that is not said. A server
// listens on 0.0.0.0 or nowhere in particular; its clients on the same machine mean loopback.
std::optional<HttpAddress> parse_http_address(std::string_view text, bool tls);

// One address or several with commas between. Throws Failure; `origin` says where they come from.
std::vector<client::Address> parse_servers(std::string_view text, const std::string& origin);

}  // namespace lockd::cli
