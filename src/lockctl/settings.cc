#include "lockctl/settings.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "config/settings.h"
#include "lockctl/commands/command_table.h"
#include "lockctl/output/failure.h"

namespace lockd::cli {
namespace {

using config::in_quotes;

std::string default_file(const config::Environment& environment) {
  const auto variable = [&](const char* name) {
    const char* const value = environment.variable(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string xdg = variable("XDG_CONFIG_HOME");
  if (xdg.starts_with('/')) return xdg + "/lockd.toml";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.config/lockd.toml";
}

std::string loopback_for(const std::string& host) {
  if (host.empty() || host == "0.0.0.0") return "127.0.0.1";
  return host == "::" ? "::1" : host;
}

std::optional<client::Address> parse_server(std::string_view text) {
  const auto address = config::parse_address(text, client::Address{}.port);
  if (!address || address->host.empty() || address->port == 0) return std::nullopt;
  return client::Address{address->host, address->port};
}

// What `parse` makes of each part of a setting that is a list.
template <typename Parse>
auto list_of(const config::Settings& settings, std::string_view name, std::string_view rule,
             Parse parse) {
  std::vector<typename decltype(parse(""))::value_type> all;
  for (std::string_view part : config::split_list(settings.text(name))) {
    part = config::trimmed(part);
    if (part.empty()) continue;
    const auto one = parse(part);
    if (!one) {
      throw Failure(kExitConfig, settings.named(name) + " is " + in_quotes(part) + ": it takes " +
                                     std::string(rule));
    }
    all.push_back(*one);
  }
  if (all.empty()) throw Failure(kExitConfig, settings.named(name) + " names no server");
  return all;
}

std::vector<client::Address> servers_of(const config::Settings& settings, std::string_view name) {
  return list_of(settings, name, "HOST or HOST:PORT", parse_server);
}

std::vector<HttpAddress> https_of(const config::Settings& settings, std::string_view name,
                                  bool tls) {
  return list_of(settings, name, "HOST:PORT or http://HOST:PORT",
                 [tls](std::string_view text) { return parse_http_address(text, tls); });
}

// Of two settings that exclude each other, the one from the stronger source; the first when neither
// is given.
std::string_view stronger(const config::Settings& settings, std::string_view one,
                          std::string_view other) {
  const int rank = settings.value(one).origin.rank;
  const int other_rank = settings.value(other).origin.rank;
  if (rank == other_rank && rank > 0) {
    throw Failure(kExitConfig,
                  settings.named(one) + " and " + settings.named(other) + ": give one of them");
  }
  return other_rank > rank ? other : one;
}

// Not where a stronger source names a server of the line port: that may be another machine.
bool is_asked_over_http(const config::Settings& settings) {
  const int rank = settings.value("http").origin.rank;
  return settings.is_given("http") && rank >= settings.value("server").origin.rank &&
         rank >= settings.value("cluster").origin.rank;
}

// Those of the command line, or the one that other commands would use.
std::vector<HttpAddress> http_servers_of(const config::Settings& settings,
                                         const config::Arguments& arguments, bool tls) {
  if (arguments.text("server")) return https_of(settings, "server", tls);
  if (settings.is_given("http")) return https_of(settings, "http", tls);
  throw Failure(kExitConfig, "--http needs --servers http://HOST:PORT, or LOCKD_HTTP_ADDR");
}

// --http of bench is a boolean; that of other commands is an address.
bool uses_http(const config::Arguments& arguments) {
  const auto& given = arguments.given();
  return std::any_of(given.begin(), given.end(), [](const config::Given& one) {
    return one.option->name == "http" && !one.option->takes_value() && one.text == "true";
  });
}

std::optional<client::TlsOptions> tls_of(const config::Settings& settings) {
  client::TlsOptions tls{.ca_file = settings.text("tls-ca"),
                         .certificate = settings.text("tls-cert"),
                         .key = settings.text("tls-key"),
                         .server_name = settings.text("tls-server-name"),
                         .verify = !settings.is_on("tls-insecure")};
  if (tls.certificate.empty() != tls.key.empty()) {
    throw Failure(kExitConfig, "--tls-cert and --tls-key need each other");
  }
  const bool implied =
      !tls.ca_file.empty() || !tls.certificate.empty() || !tls.server_name.empty() || !tls.verify;
  if (settings.is_given("tls") ? !settings.is_on("tls") : !implied) return std::nullopt;
  return tls;
}

std::string token_of(const config::Settings& settings, const config::Environment& environment) {
  if (stronger(settings, "token", "token-file") == "token") return settings.text("token");
  const std::string is_path =
      settings.named("token-file") + " is " + in_quotes(settings.text("token-file"));
  const config::FileText file = environment.read_file(settings.text("token-file"));
  if (!file.error.empty()) {
    throw Failure(kExitConfig, is_path + ": it cannot be read: " + file.error);
  }
  const auto token = config::parse_token(config::trimmed(file.text));
  if (token) return *token;
  throw Failure(kExitConfig, is_path + ": the file must hold " +
                                 rule_of(*find_option(settings.table(), "token")));
}

}  // namespace

std::string HttpAddress::to_string() const {
  return (tls ? "https://" : "http://") + address.to_string();
}

client::ClientOptions Settings::client() const {
  if (is_cluster) return {.cluster = servers, .connect = connect};
  return {.servers = servers, .connect = connect};
}

Settings load_settings(const config::Arguments& arguments, const config::Environment& environment) {
  const config::Settings given =
      config::load_settings(connection_options(), arguments.given(), environment,
                            {.default_file = default_file(environment)});
  if (!given.error.empty()) throw Failure(kExitConfig, given.error);
  Settings settings;
  settings.connect.tls = tls_of(given);
  const bool tls = settings.connect.tls.has_value();
  if (uses_http(arguments)) {
    settings.http_servers = http_servers_of(given, arguments, tls);
  } else if (const auto named = stronger(given, "server", "cluster"); given.is_given(named)) {
    settings.servers = servers_of(given, named);
    settings.is_cluster = named == "cluster";
  }
  settings.connect.auth_token = token_of(given, environment);
  if (stronger(given, "token", "token-file") == "token-file") {
    settings.connect.auth_token_file = given.text("token-file");
  }
  settings.connect.connect_timeout = given.seconds("connect-timeout");
  settings.connect.reply_timeout = settings.connect.connect_timeout;
  if (is_asked_over_http(given)) settings.http = https_of(given, "http", tls);
  return settings;
}

std::optional<HttpAddress> parse_http_address(std::string_view text, bool tls) {
  HttpAddress http{.tls = tls};
  for (const auto& [scheme, secure] : {std::pair{std::string_view("http://"), false},
                                       std::pair{std::string_view("https://"), true}}) {
    if (!text.starts_with(scheme)) continue;
    text.remove_prefix(scheme.size());
    http.tls = secure;
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  const auto address = config::parse_address(text);
  if (!address || address->port == 0) return std::nullopt;
  http.address = {loopback_for(address->host), address->port};
  return http;
}

}  // namespace lockd::cli
