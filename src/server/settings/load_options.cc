#include "server/settings/load_options.h"

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <cstddef>
#include <optional>
#include <utility>

#include "server/access/access_file.h"
#include "server/settings/token_file.h"

namespace lockd {
namespace {

using config::Settings;

Action action_of(const config::Arguments& arguments) {
  if (arguments.has("help")) return Action::help;
  if (arguments.has("version")) return Action::version;
  if (arguments.has("check-config")) return Action::check_config;
  if (arguments.has("export")) return Action::export_chain;
  return arguments.has("import") ? Action::import_chain : Action::serve;
}

// Which of the words it is, as the enum that has them in this order.
template <typename Enum, std::size_t kSize>
Enum word_as(const std::array<std::string_view, kSize>& words, std::string_view word) {
  return static_cast<Enum>(std::find(words.begin(), words.end(), word) - words.begin());
}

std::vector<std::string> list_of(std::string_view text) {
  if (text.empty()) return {};
  const auto parts = config::split_list(text);
  return {parts.begin(), parts.end()};
}

std::optional<Endpoint> endpoint_of(const std::string& text) { return config::parse_address(text); }

void add_cluster(const Settings& settings, Options& options) {
  options.etcd = list_of(settings.text("etcd"));
  options.etcd_cluster = settings.text("etcd-cluster");
  options.advertise_addr = endpoint_of(settings.text("advertise-addr"));
  options.node_id = settings.text("node-id");
  if (!options.etcd.empty() && options.node_id.empty()) {
    options.node_id = settings.text("advertise-addr");
  }
  options.etcd_detect = settings.seconds("etcd-detect");
  options.etcd_priority = static_cast<int>(settings.whole("etcd-priority"));
  options.etcd_ca = settings.text("etcd-ca");
  options.etcd_cert = settings.text("etcd-cert");
  options.etcd_key = settings.text("etcd-key");
  options.etcd_user = settings.text("etcd-user");
  options.etcd_password_file = settings.text("etcd-password-file");
  options.cluster_secret_file = settings.text("cluster-secret-file");
  options.forward = settings.is_on("forward");
  options.forward_timeout = settings.seconds("forward-timeout");
}

// All but the secret.
Options options_of(const Settings& settings) {
  const auto whole = [&](std::string_view name) {
    return static_cast<std::uint32_t>(settings.whole(name));
  };
  Options options;
  options.host = settings.text("host");
  options.port.reset();
  if (!settings.text("port").empty()) options.port = static_cast<std::uint16_t>(whole("port"));
  options.http_addr = endpoint_of(settings.text("http-addr"));
  options.metrics = settings.is_on("metrics");
  options.http_allow_origin = list_of(settings.text("http-allow-origin"));
  options.http_allow_host = list_of(settings.text("http-allow-host"));
  options.threads = whole("threads");
  options.default_lease_ttl = settings.seconds("default-lease-ttl");
  options.lease_sweep_interval = settings.seconds("lease-sweep-interval");
  options.gc_interval = settings.seconds("gc-interval");
  options.gc_max_idle = settings.seconds("gc-max-idle");
  options.max_locks = settings.whole("max-locks");
  options.max_waiters = whole("max-waiters");
  options.max_holds = whole("max-holds");
  options.fence_floor = settings.whole("fence-floor");
  options.max_holds_per_client = whole("max-holds-per-client");
  options.max_lease_ttl = std::chrono::seconds(settings.whole("max-lease-ttl"));
  options.max_set_wait = settings.seconds("max-set-wait");
  options.auto_release_on_disconnect = settings.is_on("auto-release-on-disconnect");
  options.max_connections = whole("max-connections");
  options.max_connections_per_ip = whole("max-connections-per-ip");
  options.max_subscriptions = whole("max-subscriptions");
  options.max_watchers = whole("max-watchers");
  options.max_buffer_memory = settings.size("max-buffer-memory");
  options.read_timeout = settings.seconds("read-timeout");
  options.write_timeout = settings.seconds("write-timeout");
  options.shutdown_timeout = settings.seconds("shutdown-timeout");
  options.detailed_errors = settings.is_on("detailed-errors");
  options.close_on_violation = settings.is_on("close-on-violation");
  options.tls_cert = settings.text("tls-cert");
  options.tls_key = settings.text("tls-key");
  options.tls_client_ca = settings.text("tls-client-ca");
  options.auth_token = settings.text("auth-token");
  options.auth_token_file = settings.text("auth-token-file");
  options.access = settings.text("access");
  options.auth_timeout = settings.seconds("auth-timeout");
  options.max_unauthenticated = whole("max-unauthenticated");
  options.wal = settings.text("wal");
  // `always` is no interval.
  options.wal_sync = config::parse_interval(settings.text("wal-sync")).value_or(Duration::zero());
  options.history = settings.size("history");
  options.slow_wait = settings.seconds("slow-wait");
  options.slow_hold = settings.seconds("slow-hold");
  options.log_level = word_as<LogLevel>(
      std::to_array<std::string_view>({"trace", "debug", "info", "warn", "error"}),
      settings.text("log-level"));
  options.log_format = word_as<LogFormat>(std::to_array<std::string_view>({"text", "json"}),
                                          settings.text("log-format"));
  options.debug = settings.is_on("debug");
  options.config = settings.text("config");
  if (find_option(settings.table(), "etcd") != nullptr) add_cluster(settings, options);
  return options;
}

// Of the descriptors: for the journal, its snapshots, ports and etcd; and for each loop.
constexpr std::uint64_t kReservedFiles = 64;
constexpr std::uint64_t kFilesPerThread = 4;
// What connections may have in buffers by default, however much memory there is.
constexpr std::uint64_t kBufferMemoryMax = std::uint64_t{1} << 30;

bool is_loopback(const std::string& host) {
  boost::system::error_code error;
  return host == "localhost" || boost::asio::ip::make_address(host, error).is_loopback();
}

// Each step returns false when the start ends there, with the reason in `error`.
class Loader {
 public:
  Loader(Profile profile, const config::Environment& environment)
      : profile_(profile), environment_(environment), loaded_{.settings = Settings({})} {}

  Loaded load(std::span<const char* const> arguments) {
    config::Parsed parsed = parse_arguments(program(profile_), arguments);
    loaded_.action = action_of(parsed.arguments);
    loaded_.error = std::move(parsed.error);
    loaded_.secrets_outside = std::move(parsed.secrets);
    const bool about = loaded_.action == Action::help || loaded_.action == Action::version;
    if (about || !loaded_.error.empty()) return std::move(loaded_);
    loaded_.settings =
        load_settings(settings(profile_), parsed.arguments.given(), environment_,
                      {.precedence = precedence(profile_), .prefix = kServerVariables});
    const auto& secrets = settings_.secrets;
    loaded_.secrets_outside.insert(loaded_.secrets_outside.end(), secrets.begin(), secrets.end());
    loaded_.warnings = std::move(settings_.warnings);
    if (!fail(settings_.error) || !choose_journal()) return std::move(loaded_);
    derive();
    loaded_.options = options_of(settings_);
    loaded_.options.dflockd_letter = profile_ == Profile::dflockd;
    if (!check_copy(parsed.arguments)) return std::move(loaded_);
    if (!loaded_.directory.empty()) {
      check_cluster();  // nobody is served: the rest does not matter
    } else if (check_tls() && find_secret() && check_access() && check_cluster()) {
      warn_of_useless();
      warn_of_unsafe();
    }
    return std::move(loaded_);
  }

 private:
  // One place keeps the locks: memory, etcd, or the journal, whose directory has a default.
  bool choose_journal() {
    const bool in_etcd =
        find_option(settings_.table(), "etcd") != nullptr && !settings_.text("etcd").empty();
    const std::string_view other = settings_.is_on("memory") ? "memory" : in_etcd ? "etcd" : "";
    if (other.empty()) return true;
    if (settings_.is_given("wal")) {
      return fail(settings_.named("wal") + " and " + settings_.named(other) +
                  " exclude each other: locks are kept in one place");
    }
    settings_.value("wal").text.clear();
    return true;
  }

  // What follows from the machine, or from other settings.
  void derive() {
    if (std::string& threads = settings_.value("threads").text; threads.empty()) {
      threads = std::to_string(std::clamp(environment_.cores, 1U, kThreadsMax));
    }
    derive_connections();
    if (std::string& metrics = settings_.value("metrics").text; metrics.empty()) {
      metrics = endpoint_of(settings_.text("http-addr")) ? "true" : "false";
    }
    if (std::string& buffers = settings_.value("max-buffer-memory").text; buffers.empty()) {
      const std::uint64_t quarter = environment_.memory / 4;
      const bool is_little = quarter > 0 && quarter < kBufferMemoryMax;
      buffers = config::print_size(is_little ? quarter : kBufferMemoryMax);
    }
    if (settings_.is_on("debug")) apply_debug();
  }

  // Of descriptors some are for files, ports and loops. Strangers get no more than half of the
  // connections, so that they cannot keep the others out.
  void derive_connections() {
    const std::uint64_t files = environment_.files_max;
    const std::uint64_t reserve = kReservedFiles + kFilesPerThread * settings_.whole("threads");
    std::string& connections = settings_.value("max-connections").text;
    if (connections.empty()) {
      connections = std::to_string(
          std::clamp<std::uint64_t>(files - std::min(reserve, files / 2), 1, UINT32_MAX));
    }
    const std::uint64_t half = settings_.whole("max-connections") / 2;
    std::string& strangers = settings_.value("max-unauthenticated").text;
    if (settings_.is_given("max-unauthenticated") || half == 0) return;
    strangers = std::to_string(std::min(half, settings_.whole("max-unauthenticated")));
  }

  // --debug is --log-level debug, from wherever it came: a level from a higher source wins.
  void apply_debug() {
    const config::Origin& debug = settings_.value("debug").origin;
    Settings::Value& level = settings_.value("log-level");
    if (level.text == "trace" || level.text == "debug") return;
    if (debug.rank < level.origin.rank) {
      return warn(settings_.named("log-level") + " is used, not " + settings_.named("debug"));
    }
    level = {"debug", debug};
  }

  // A chain that is copied, instead of serving.
  bool check_copy(const config::Arguments& arguments) {
    const auto to = arguments.text("export");
    const auto from = arguments.text("import");
    if (!to && !from) return true;
    const std::string flag = to ? "--export" : "--import";
    if (to && from) return fail("--export and --import exclude each other: one at a time");
    loaded_.directory = to.value_or(from.value_or(""));
    if (loaded_.options.etcd.empty()) return fail(flag + " needs --etcd");
    return true;
  }

  bool check_tls() {
    const Options& options = loaded_.options;
    if (options.tls_cert.empty() != options.tls_key.empty()) {
      const bool no_key = options.tls_key.empty();
      return fail(settings_.named(no_key ? "tls-cert" : "tls-key") + " needs " +
                  (no_key ? "--tls-key" : "--tls-cert") + ": give both or neither");
    }
    // Without TLS nobody would be asked for a certificate, yet protected mode would be over.
    if (!options.tls_client_ca.empty() && options.tls_cert.empty()) {
      return fail(settings_.named("tls-client-ca") + " needs --tls-cert and --tls-key");
    }
    return true;
  }

  bool find_secret() {
    Options& options = loaded_.options;
    options.secret = options.auth_token;
    const std::string& path = options.auth_token_file;
    if (path.empty()) {
      is_weak_ = !options.secret.empty() && is_weak_token(settings_.text("auth-token"));
      return true;
    }
    const TokenFile file = read_token_file(path, environment_);
    const std::string name = settings_.named("auth-token-file");
    if (!file.error.empty()) {
      return fail(name + " is " + config::in_quotes(path) + ": " + file.error);
    }
    const auto& tokens = file.tokens;
    if (!options.auth_token.empty() &&
        std::find(tokens.begin(), tokens.end(), options.auth_token) == tokens.end()) {
      return fail(settings_.named("auth-token") + " differs from what " + name +
                  " holds: give one of them");
    }
    if (file.open_to_others) warn(config::open_to_others(path));
    options.secret = tokens.front();
    if (tokens.size() > 1) options.second_secret = tokens.back();
    is_weak_ = std::any_of(tokens.begin(), tokens.end(), is_weak_token);
    return true;
  }

  bool check_access() {
    const Options& options = loaded_.options;
    const std::array shared{options.secret, options.second_secret};
    return fail(read_access_file(options, shared, environment_).error);
  }

  bool check_cluster() {
    const Options& options = loaded_.options;
    if (options.etcd.empty()) return true;
    const bool copies = !loaded_.directory.empty();
    return (copies || check_advertised()) && check_etcd_access() &&
           (copies || find_cluster_secret());
  }

  bool check_advertised() {
    const auto& address = loaded_.options.advertise_addr;
    if (!address.has_value() || address->host.empty() || address->port == 0) {
      return fail(settings_.named("etcd") +
                  " needs --advertise-addr HOST:PORT, where clients reach this server");
    }
    if (address->host == "0.0.0.0" || address->host == "::") {
      return fail(settings_.named("advertise-addr") +
                  " is every address of this machine, and no address for clients on others");
    }
    return true;
  }

  bool check_etcd_access() {
    const Options& options = loaded_.options;
    if (options.etcd_cert.empty() != options.etcd_key.empty()) {
      return fail("--etcd-cert and --etcd-key need each other: give both or neither");
    }
    if (!options.etcd_cert.empty() && options.etcd_ca.empty()) {
      return fail(settings_.named("etcd-cert") + " needs --etcd-ca");
    }
    if (options.etcd_user.empty() != options.etcd_password_file.empty()) {
      return fail("--etcd-user and --etcd-password-file need each other: give both or neither");
    }
    return true;
  }

  // A proof of it can be tried offline by who has seen one: so it may not be short.
  bool find_cluster_secret() {
    Options& options = loaded_.options;
    const std::string& path = options.cluster_secret_file;
    if (path.empty()) return true;
    const TokenFile file = read_token_file(path, environment_);
    const std::string is =
        settings_.named("cluster-secret-file") + " is " + config::in_quotes(path) + ": ";
    if (!file.error.empty()) return fail(is + file.error);
    if (file.tokens.size() > 1) return fail(is + "a cluster has one secret, in one line");
    if (is_weak_token(file.tokens.front())) {
      return fail(is + "the secret must have 16 characters or more, at random");
    }
    if (file.open_to_others) warn(config::open_to_others(path));
    options.cluster_secret = file.tokens.front();
    return true;
  }

  // Values that are each valid, but of which one makes the other useless.
  void warn_of_useless() {
    const Options& options = loaded_.options;
    if (options.metrics && !options.http_addr) {
      warn(settings_.named("metrics") + " has no effect without --http-addr");
    }
    if (settings_.is_given("default-lease-ttl") && options.max_lease_ttl != Duration::zero() &&
        options.default_lease_ttl > options.max_lease_ttl) {
      warn(settings_.named("default-lease-ttl") + " is cut to --max-lease-ttl");
    }
    if (options.wal.empty() && options.wal_sync != Duration::zero()) {
      warn(settings_.named("wal-sync") + " has no effect without a journal");
    }
    if (profile_ == Profile::lockd_ha && options.etcd.empty()) {
      for (const std::string_view name :
           {"node-id", "advertise-addr", "etcd-ca", "etcd-user", "cluster-secret-file"}) {
        if (!settings_.is_given(name)) continue;
        warn(settings_.named(name) + " has no effect without --etcd: this server stands alone");
      }
    }
    if (options.max_connections != 0 && options.max_connections_per_ip > options.max_connections) {
      warn(settings_.named("max-connections-per-ip") +
           " has no effect: it is more than --max-connections");
    }
  }

  // Values that let in more than may be meant, or that show a secret.
  void warn_of_unsafe() {
    const Options& options = loaded_.options;
    const bool line_abroad = options.port && !is_loopback(options.host);
    const bool http_abroad = options.http_addr && !is_loopback(options.http_addr->host);
    const std::string serves_all =
        " serves whoever can reach it: set --auth-token-file, --access or --tls-client-ca";
    if (line_abroad && !options.demands_proof() && !options.line_is_protected()) {
      warn(settings_.named("host") + serves_all);
    }
    if (http_abroad && !options.demands_proof() && !options.http_is_protected()) {
      warn(settings_.named("http-addr") + serves_all);
    }
    const bool abroad = line_abroad || http_abroad;
    if (!options.secret.empty() || !options.access.empty()) warn_of_weak_token(abroad);
    const bool etcd_abroad = std::ranges::any_of(options.etcd, [](const std::string& endpoint) {
      return !is_loopback(endpoint_of(endpoint)->host);
    });
    if (etcd_abroad && !options.etcd_user.empty() && options.etcd_ca.empty()) {
      warn("the password of --etcd-user crosses the network in plain text: set --etcd-ca");
    }
    // Whether these can be read at all is seen when they are used.
    for (const std::string& path :
         {options.tls_key, options.etcd_key, options.etcd_password_file}) {
      const bool is_open = !path.empty() && environment_.read_file(path).open_to_others;
      if (is_open) warn(config::open_to_others(path));
    }
  }

  void warn_of_weak_token(bool abroad) {
    const Options& options = loaded_.options;
    if (abroad && options.tls_cert.empty()) {
      warn("the auth token crosses the network in plain text: set --tls-cert and --tls-key");
    }
    if (is_weak_) warn(std::string(kWeakToken));
  }

  void warn(std::string line) { loaded_.warnings.push_back(std::move(line)); }

  // Nothing is wrong when the line is empty.
  bool fail(std::string line) {
    loaded_.error = std::move(line);
    return loaded_.error.empty();
  }

  const Profile profile_;
  const config::Environment& environment_;
  Loaded loaded_;
  bool is_weak_ = false;  // an auth token that all share
  Settings& settings_ = loaded_.settings;
};

}  // namespace

Loaded load_options(Profile profile, std::span<const char* const> arguments,
                    const config::Environment& environment) {
  return Loader(profile, environment).load(arguments);
}

Options default_options(Profile profile) {
  Options options = options_of(Settings(settings(profile)));
  options.dflockd_letter = profile == Profile::dflockd;
  return options;
}

void scrub_secrets(Loaded& loaded) {
  config::scrub(loaded.secrets_outside);
  loaded.secrets_outside.clear();
  for (const config::Option& option : loaded.settings.table()) {
    std::string& text = loaded.settings.value(option.name).text;
    if (option.secret && !text.empty()) text.assign(text.size(), '*');
  }
}

std::string config_text(const Loaded& loaded) {
  const Options& options = loaded.options;
  const auto say = [](bool on, bool guarded) {
    return !on ? "off" : guarded ? "protected mode, loopback peers only" : "open";
  };
  return config_text(loaded.settings) +
         "\n# The line port: " + say(options.port.has_value(), options.line_is_protected()) +
         "\n# HTTP: " + say(options.http_addr.has_value(), options.http_is_protected()) + '\n';
}

}  // namespace lockd
