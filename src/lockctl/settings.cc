#include "lockctl/settings.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <system_error>

#include "lockctl/config_file.h"
#include "lockctl/output/failure.h"
#include "lockctl/values.h"

namespace lockd::cli {
namespace {

// No configuration or token is near this. It ends the reading of a device.
constexpr std::size_t kFileSizeMax = std::size_t{1} << 20;

std::optional<std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(path.c_str(), "re"),
                                                               std::fclose);
  if (stream == nullptr && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  std::string text(kFileSizeMax + 1, '\0');
  const std::size_t size =
      stream == nullptr ? 0 : std::fread(text.data(), 1, text.size(), stream.get());
  if (stream == nullptr || std::ferror(stream.get()) != 0) {
    throw Failure(kExitConfig, path + ": " + std::generic_category().message(errno));
  }
  if (size > kFileSizeMax) throw Failure(kExitConfig, path + ": larger than 1 MiB");
  text.resize(size);
  return text;
}

// Looks a setting up in one source after the other.
class Lookup {
 public:
  Lookup(const Arguments& arguments, const Environment& environment)
      : arguments_(arguments), machine_(environment) {
    read_config();
  }

  struct Found {
    std::string text;
    std::string origin;  // "--tls-ca", "DFLOCKD_TLS_CA", "line 3 of ..."
    int rank = 0;        // of its source: larger wins
  };

  std::optional<Found> find(std::string_view name) const {
    const Option* const option = option_of(name);
    if (arguments_.text(name, option->shape)) {
      return Found{joined(name), "--" + std::string(name), 3};
    }
    if (auto found = variable(std::string(option->variable))) {
      return checked(*option, std::move(*found));
    }
    const auto entry = config_.entries.find(std::string(name));
    if (entry == config_.entries.end()) return std::nullopt;
    return checked(*option, Found{entry->second.text, entry->second.origin, 1});
  }

  std::optional<Found> variable(const std::string& name) const {
    auto text = machine_.variable(name);
    if (!text || text->empty()) return std::nullopt;  // an empty variable is an unset one
    return Found{std::move(*text), name, 2};
  }

  std::string text(std::string_view name) const {
    const auto found = find(name);
    return found ? found->text : "";
  }
  bool toggle(std::string_view name, bool otherwise) const {
    const auto found = find(name);
    return found ? *parse_bool(found->text) : otherwise;
  }

 private:
  static const Option* option_of(std::string_view name) {
    for (const Option& option : connection_options()) {
      if (option.name == name) return &option;
    }
    std::abort();  // a name that is not in the table
  }

  // Those that repeat make one list.
  std::string joined(std::string_view name) const {
    if (!option_of(name)->repeats) return std::string(*arguments_.text(name));
    std::string list;
    for (const std::string_view value : arguments_.all(name)) {
      list += (list.empty() ? "" : ",") + std::string(value);
    }
    return list;
  }

  static Found checked(const Option& option, Found found) {
    if (fits(option, found.text)) return found;
    throw Failure(kExitConfig, found.origin + (option.secret ? "" : ": " + in_quotes(found.text)) +
                                   ": it takes " + rule_of(option));
  }

  void read_config() {
    const auto named = arguments_.text("config");
    const std::string path = named ? std::string(*named) : default_path();
    if (path.empty()) return;
    const auto text = machine_.file(path);
    if (!text && named) throw Failure(kExitConfig, path + ": there is no such file");
    if (text) config_ = read_config_file(path, *text);
  }

  std::string default_path() const {
    const auto xdg = machine_.variable("XDG_CONFIG_HOME");
    if (xdg && xdg->starts_with('/')) return *xdg + "/lockd.toml";
    const auto home = machine_.variable("HOME");
    return home && !home->empty() ? *home + "/.config/lockd.toml" : "";
  }

  const Arguments& arguments_;
  const Environment& machine_;
  ConfigFile config_;
};

std::string loopback_for(const std::string& host) {
  if (host == "0.0.0.0") return "127.0.0.1";
  return host == "::" ? "::1" : host;
}

std::vector<client::Address> servers_of(const Lookup& lookup) {
  const auto list = lookup.find("server");
  if (list && list->rank > 1) return parse_servers(list->text, list->origin);
  const auto host = lookup.variable("DFLOCKD_HOST");
  const auto port = lookup.variable("DFLOCKD_PORT");
  if (!host && !port && list) return parse_servers(list->text, list->origin);
  client::Address address;
  if (host) {
    const auto servers = parse_servers(host->text, host->origin);
    address.host = loopback_for(servers.front().host);
  }
  if (port) {
    const auto number = parse_whole(port->text, 1, UINT16_MAX);
    if (!number) {
      throw Failure(kExitConfig, "DFLOCKD_PORT: " + in_quotes(port->text) +
                                     ": it takes a whole number from 1 to 65535");
    }
    address.port = static_cast<std::uint16_t>(*number);
  }
  return {address};
}

// Nothing unless a cluster is named, and by a source that none of single servers wins over.
std::optional<Lookup::Found> cluster_of(const Lookup& lookup) {
  auto cluster = lookup.find("cluster");
  const auto servers = lookup.find("server");
  if (cluster && servers && cluster->rank == servers->rank) {
    throw Failure(kExitConfig, cluster->origin + " and " + servers->origin + ": give one of them");
  }
  if (!cluster || (servers && servers->rank > cluster->rank)) return std::nullopt;
  const bool one_named = lookup.variable("DFLOCKD_HOST") || lookup.variable("DFLOCKD_PORT");
  if (cluster->rank == 1 && one_named) return std::nullopt;
  return cluster;
}

std::vector<HttpAddress> https_of(const Lookup::Found& found, bool tls) {
  std::vector<HttpAddress> all;
  for (const std::string& part : split_list(found.text)) {
    const auto address = parse_http_address(part, tls);
    if (!address) {
      throw Failure(kExitConfig, found.origin + ": " + in_quotes(part) +
                                     ": it takes HOST:PORT or http://HOST:PORT");
    }
    all.push_back(*address);
  }
  if (all.empty()) throw Failure(kExitConfig, found.origin + ": it names no server");
  return all;
}

// Those of the command line, or the one that other commands would use.
std::vector<HttpAddress> http_servers_of(const Lookup& lookup, bool tls) {
  auto found = lookup.find("server");
  if (!found || found->rank < 3) found = lookup.find("http");
  if (!found) {
    throw Failure(kExitConfig, "--http needs --servers http://HOST:PORT, or DFLOCKD_HTTP_ADDR");
  }
  return https_of(*found, tls);
}

std::optional<client::TlsOptions> tls_of(const Lookup& lookup) {
  client::TlsOptions tls{.ca_file = lookup.text("tls-ca"),
                         .certificate = lookup.text("tls-cert"),
                         .key = lookup.text("tls-key"),
                         .server_name = lookup.text("tls-server-name"),
                         .verify = !lookup.toggle("tls-insecure", false)};
  if (tls.certificate.empty() != tls.key.empty()) {
    throw Failure(kExitConfig, "--tls-cert and --tls-key need each other");
  }
  const bool implied =
      !tls.ca_file.empty() || !tls.certificate.empty() || !tls.server_name.empty() || !tls.verify;
  if (!lookup.toggle("tls", implied)) return std::nullopt;
  return tls;
}

// Of the token and the file with it, the one from the stronger source.
std::string token_of(const Lookup& lookup, const Environment& environment) {
  const auto token = lookup.find("token");
  const auto file = lookup.find("token-file");
  if (token && file && token->rank == file->rank) {
    throw Failure(kExitConfig, token->origin + " and " + file->origin + ": give one of them");
  }
  if (!file || (token && token->rank > file->rank)) {
    return std::string(trimmed(token ? token->text : ""));
  }
  const auto text = environment.file(file->text);
  if (!text) throw Failure(kExitConfig, file->text + ": there is no such file");
  std::string secret(trimmed(*text));
  if (secret.empty() || secret.find_first_of("\r\n") != std::string::npos) {
    throw Failure(kExitConfig, file->text + ": it must have one line, the token");
  }
  return secret;
}

}  // namespace

std::string HttpAddress::to_string() const {
  return (tls ? "https://" : "http://") + address.to_string();
}

client::ClientOptions Settings::client() const {
  if (is_cluster) return {.cluster = servers, .connect = connect};
  return {.servers = servers, .connect = connect};
}

Environment process_environment() {
  return {.variable = [](const std::string& name) -> std::optional<std::string> {
            const char* const value = std::getenv(name.c_str());
            return value == nullptr ? std::nullopt : std::optional<std::string>(value);
          },
          .file = read_file};
}

Settings load_settings(const Arguments& arguments, const Environment& environment) {
  const Lookup lookup(arguments, environment);
  Settings settings;
  settings.connect.tls = tls_of(lookup);
  const bool tls = settings.connect.tls.has_value();
  if (arguments.text("http", Shape::toggle)) {
    settings.http_servers = http_servers_of(lookup, tls);
  } else if (const auto cluster = cluster_of(lookup)) {
    settings.servers = parse_servers(cluster->text, cluster->origin);
    settings.is_cluster = true;
  } else {
    settings.servers = servers_of(lookup);
  }
  settings.connect.auth_token = token_of(lookup, environment);
  if (const auto timeout = lookup.find("connect-timeout")) {
    const Duration limit = *parse_seconds(timeout->text);
    if (limit == Duration::zero()) throw Failure(kExitConfig, timeout->origin + ": more than 0");
    settings.connect.connect_timeout = settings.connect.reply_timeout = limit;
  }
  if (const auto http = lookup.find("http")) settings.http = https_of(*http, tls);
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
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) return std::nullopt;
  const std::string host = colon == 0 ? "127.0.0.1" : std::string(text.substr(0, colon));
  if (host.find(':') != std::string::npos && !host.ends_with(']')) return std::nullopt;
  const auto address = client::Address::parse(host + std::string(text.substr(colon)));
  if (!address || address->port == 0) return std::nullopt;
  http.address = *address;
  http.address.host = loopback_for(address->host);
  return http;
}

std::vector<client::Address> parse_servers(std::string_view text, const std::string& origin) {
  std::vector<client::Address> servers;
  for (const std::string& part : split_list(text)) {
    const auto address = client::Address::parse(part);
    if (!address) {
      throw Failure(kExitConfig, origin + ": " + in_quotes(part) + ": it takes HOST or HOST:PORT");
    }
    servers.push_back(*address);
  }
  if (servers.empty()) throw Failure(kExitConfig, origin + ": it names no server");
  return servers;
}

}  // namespace lockd::cli
