#include "server/settings/load_options.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "server/settings/config_file.h"
#include "server/settings/option_values.h"

namespace lockd {
namespace {

using Source = Origin::Source;

// Each step returns false when the start ends there, with the reason in `error`.
class Loader {
 public:
  Loader(Flavour flavour, const Environment& environment)
      : environment_(environment), table_(settings(flavour)), overridden_(table_.size()) {
    loaded_.flavour = flavour;
    loaded_.options = default_options(flavour);
    loaded_.origins.resize(table_.size());
  }

  Loaded load(std::span<const char* const> arguments) {
    CommandLine line = read_command_line(loaded_.flavour, arguments);
    loaded_.action = line.action;
    if (line.action == Action::help || line.action == Action::version) return std::move(loaded_);
    loaded_.error = std::move(line.error);
    loaded_.secrets_outside = std::move(line.secrets);
    if (!loaded_.error.empty() || !take(line.given)) return std::move(loaded_);
    warn_of_overridden();
    if (!check_tls() || !find_secret() || !check_cluster()) return std::move(loaded_);
    derive();
    warn_of_useless();
    return std::move(loaded_);
  }

 private:
  struct Overridden {
    std::string text;
    Origin origin;
  };

  bool take(const std::vector<Given>& flags) {
    const std::vector<Given> variables = read_variables();
    const Given* config = nullptr;
    for (const auto* source : {&flags, &variables}) {
      for (const Given& given : *source) {
        if (given.setting->name == "config") config = &given;
      }
    }
    std::vector<Given> entries;
    if (config != nullptr && !read_file(*config, entries)) return false;
    for (const auto* source : {&std::as_const(entries), &flags, &variables}) {
      for (const Given& given : *source) {
        if (!assign(given)) return false;
      }
    }
    return true;
  }

  std::vector<Given> read_variables() {
    std::vector<Given> variables;
    for (const Setting& setting : table_) {
      // The first of two wins, so it is applied last.
      for (auto name = setting.variables.rbegin(); name != setting.variables.rend(); ++name) {
        const char* value = *name == nullptr ? nullptr : environment_.variable(*name);
        if (value == nullptr || *value == '\0') continue;
        variables.push_back({&setting, value, {Source::variable, *name}});
        if (setting.secret) loaded_.secrets_outside.emplace_back(value);
      }
    }
    return variables;
  }

  bool read_file(const Given& config, std::vector<Given>& entries) {
    if (!parse_path(config.text)) return fail(bad_value(config));
    const FileText file = environment_.read_file(config.text);
    if (!file.error.empty()) return fail(unreadable(config, file));
    ConfigFile read = read_config_file(loaded_.flavour, config.text, file.text);
    if (!read.error.empty()) return fail(std::move(read.error));
    entries = std::move(read.given);
    const bool secret = std::any_of(entries.begin(), entries.end(),
                                    [](const Given& given) { return given.setting->secret; });
    if (secret && file.open_to_others) warn_of_open(config.text);
    return true;
  }

  bool assign(const Given& given) {
    const Setting& setting = *given.setting;
    const std::size_t row = row_of(setting);
    const std::string before = setting.print(loaded_.options);
    if (!setting.assign(loaded_.options, given.text)) return fail(bad_value(given));
    Origin& origin = loaded_.origins[row];
    if (given.origin.source == Source::variable && origin.source >= Source::flag &&
        setting.print(loaded_.options) != before) {
      overridden_[row] = Overridden{before, origin};
    }
    origin = given.origin;
    return true;
  }

  void warn_of_overridden() {
    for (const Setting& setting : table_) {
      const auto& other = overridden_[row_of(setting)];
      const std::string used = setting.print(loaded_.options);
      if (!other) continue;
      const std::string name = "--" + std::string(setting.name) + ": ";
      const std::string& from = origin_of(setting.name).name;
      warn(setting.secret ? name + "the value from " + from + " is used, not the one from " +
                                other->origin.name
                          : name + in_quotes(used) + " from " + from + " is used, not " +
                                in_quotes(other->text) + " from " + other->origin.name);
    }
  }

  bool check_tls() {
    const Options& options = loaded_.options;
    if (options.tls_cert.empty() != options.tls_key.empty()) {
      const bool no_key = options.tls_key.empty();
      return fail(named(no_key ? "tls-cert" : "tls-key") + " needs " +
                  (no_key ? "--tls-key" : "--tls-cert") + ": give both or neither");
    }
    // Without TLS nobody would be asked for a certificate, yet protected mode would be over.
    if (!options.tls_client_ca.empty() && options.tls_cert.empty()) {
      return fail(named("tls-client-ca") + " needs --tls-cert and --tls-key");
    }
    return true;
  }

  bool find_secret() {
    Options& options = loaded_.options;
    options.secret = options.auth_token;
    if (options.auth_token_file.empty()) return true;
    const std::string& path = options.auth_token_file;
    const Given given{find_setting(loaded_.flavour, "auth-token-file"), path,
                      origin_of("auth-token-file")};
    const FileText file = environment_.read_file(path);
    if (!file.error.empty()) return fail(unreadable(given, file));
    const auto token = parse_token(trimmed(file.text));
    if (!token) {
      return fail(named("auth-token-file") + " is " + in_quotes(path) + ": the file must hold " +
                  std::string(find_setting(loaded_.flavour, "auth-token")->rule));
    }
    if (!options.auth_token.empty() && options.auth_token != *token) {
      return fail(named("auth-token") + " differs from what " + named("auth-token-file") +
                  " holds: give one of them");
    }
    if (file.open_to_others) warn_of_open(path);
    options.secret = *token;
    return true;
  }

  bool check_cluster() {
    const Options& options = loaded_.options;
    if (options.etcd.empty()) return true;
    if (!options.wal.empty()) {
      return fail(named("wal") + " and " + named("etcd") +
                  " exclude each other: locks are kept in one place");
    }
    const auto& address = options.advertise_addr;
    if (!address.has_value() || address->host.empty() || address->port == 0) {
      return fail(named("etcd") +
                  " needs --advertise-addr HOST:PORT, where clients reach this server");
    }
    if (options.etcd_cert.empty() != options.etcd_key.empty()) {
      return fail("--etcd-cert and --etcd-key need each other: give both or neither");
    }
    if (!options.etcd_cert.empty() && options.etcd_ca.empty()) {
      return fail(named("etcd-cert") + " needs --etcd-ca");
    }
    if (options.etcd_user.empty() != options.etcd_password_file.empty()) {
      return fail("--etcd-user and --etcd-password-file need each other: give both or neither");
    }
    return true;
  }

  // What follows from the machine, or from other settings.
  void derive() {
    Options& options = loaded_.options;
    if (options.threads == 0) options.threads = std::clamp(environment_.cores, 1U, kThreadsMax);
    const bool chosen = origin_of("metrics").source != Source::built_in;
    if (!chosen && loaded_.flavour != Flavour::lockd_server) {
      options.metrics = options.http_addr.has_value();
    }
    if (!options.etcd.empty() && options.node_id.empty()) {
      options.node_id = print_value(options.advertise_addr);
    }
    if (options.debug) apply_debug();
  }

  // Values that are each valid, but of which one makes the other useless.
  void warn_of_useless() {
    const Options& options = loaded_.options;
    if (options.metrics && !options.http_addr) {
      warn(named("metrics") + " has no effect without --http-addr");
    }
    if (options.wal.empty() && options.wal_sync != Duration::zero()) {
      warn(named("wal-sync") + " has no effect without --wal");
    }
    if (loaded_.flavour == Flavour::dflockd_ha && options.etcd.empty()) {
      for (const std::string_view name : {"node-id", "advertise-addr", "etcd-ca", "etcd-user"}) {
        if (origin_of(name).source == Source::built_in) continue;
        warn(named(name) + " has no effect without --etcd: this server stands alone");
      }
    }
    if (options.max_connections != 0 && options.max_connections_per_ip > options.max_connections) {
      warn(named("max-connections-per-ip") + " has no effect: it is more than --max-connections");
    }
  }

  // --debug is --log-level debug, from wherever it came: a level from a higher source wins.
  void apply_debug() {
    const Origin& debug = origin_of("debug");
    Origin& level = origin_of("log-level");
    if (loaded_.options.log_level <= LogLevel::debug) return;
    if (debug.source < level.source) {
      warn(named("log-level") + " is used, not " + named("debug"));
      return;
    }
    loaded_.options.log_level = LogLevel::debug;
    level = debug;
  }

  static std::string unreadable(const Given& given, const FileText& file) {
    return "--" + std::string(given.setting->name) + " from " + given.origin.name + " is " +
           in_quotes(given.text) + ": it cannot be read: " + file.error;
  }

  // "--tls-key from DFLOCKD_TLS_KEY"
  std::string named(std::string_view name) {
    return "--" + std::string(name) + " from " + origin_of(name).name;
  }

  Origin& origin_of(std::string_view name) {
    return loaded_.origins[row_of(*find_setting(loaded_.flavour, name))];
  }

  std::size_t row_of(const Setting& setting) const {
    return static_cast<std::size_t>(&setting - table_.data());
  }

  void warn_of_open(const std::string& path) {
    warn(in_quotes(path) + " holds a secret and every user can read it: chmod o-r");
  }

  void warn(std::string line) { loaded_.warnings.push_back(std::move(line)); }

  bool fail(std::string line) {
    loaded_.error = std::move(line);
    return false;
  }

  const Environment& environment_;
  const std::span<const Setting> table_;
  std::vector<std::optional<Overridden>> overridden_;  // by a variable, for each row
  Loaded loaded_;
};

}  // namespace

Loaded load_options(Flavour flavour, std::span<const char* const> arguments,
                    const Environment& environment) {
  return Loader(flavour, environment).load(arguments);
}

void scrub_secrets(Loaded& loaded) {
  for (const std::string_view secret : loaded.secrets_outside) {
    // The process owns its arguments and environment; they are const only on the way here.
    std::memset(const_cast<char*>(secret.data()), '*', secret.size());
  }
  loaded.secrets_outside.clear();
}

}  // namespace lockd
