#include "server/settings/option_table.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "base/text.h"
#include "server/settings/option_rows.h"
#include "server/settings/option_values.h"

namespace lockd {
namespace {

using namespace rows;

constexpr std::string_view kListening = "Listening";
constexpr std::string_view kKeys = "Leases and keys";
constexpr std::string_view kConnections = "Connections";
constexpr std::string_view kAccess = "Access";
constexpr std::string_view kDurability = "Durability";
constexpr std::string_view kCluster = "Cluster";
constexpr std::string_view kLogging = "Logging";
constexpr std::string_view kFile = "Configuration file";

constexpr auto kDflockd = std::to_array<Setting>({
    with_default(text<&Options::host, parse_host>(
                     "host", {"DFLOCKD_HOST"}, kListening, "ADDRESS",
                     "an IPv4 or IPv6 address, or a host name",
                     "Where the line port listens. Until one is chosen, or a token or client CA is "
                     "set, only loopback peers are served: protected mode."),
                 "every address"),
    number<&Options::port, std::uint16_t, 0, UINT16_MAX>(
        "port", {"DFLOCKD_PORT"}, kListening,
        "a whole number from 0 to 65535, where 0 picks a free port",
        "The port of the line protocol."),
    with_default(
        text<&Options::http_addr, parse_endpoint>(
            "http-addr", {"DFLOCKD_HTTP_ADDR"}, kListening, "HOST:PORT",
            "host:port, [::1]:port or :port, with a port from 0 to 65535",
            "Where HTTP listens. :PORT is every address, in protected mode like the line port."),
        "off"),
    with_default(boolean<&Options::metrics>("metrics", {"DFLOCKD_METRICS"}, kListening,
                                            "Serve /metrics over HTTP."),
                 "true when HTTP is on"),
    with_default(text<&Options::http_allow_origin, parse_origins>(
                     "http-allow-origin", {"DFLOCKD_HTTP_ALLOW_ORIGIN"}, kListening, "ORIGINS",
                     "*, or origins such as https://a.example, separated by commas",
                     "Whose pages may call HTTP from a browser, besides the server's own."),
                 "none"),
    with_default(number<&Options::threads, std::uint32_t, 1, kThreadsMax>(
                     "threads", {"DFLOCKD_THREADS"}, kListening, "a whole number from 1 to 256",
                     "How many threads serve connections."),
                 "the number of cores"),

    seconds<&Options::default_lease_ttl, Zero::refused>("default-lease-ttl",
                                                        {"DFLOCKD_DEFAULT_LEASE_TTL_S"}, kKeys,
                                                        "The lease of a request that names none."),
    seconds<&Options::lease_sweep_interval, Zero::refused>(
        "lease-sweep-interval", {"DFLOCKD_LEASE_SWEEP_INTERVAL_S"}, kKeys,
        "The longest time between two looks for leases that have ended. They end exactly on time "
        "whatever this says."),
    seconds<&Options::gc_interval, Zero::refused>(
        "gc-interval", {"DFLOCKD_GC_INTERVAL_S", "DFLOCKD_GC_LOOP_SLEEP"}, kKeys,
        "How often idle keys are looked for."),
    seconds<&Options::gc_max_idle, Zero::accepted>(
        "gc-max-idle", {"DFLOCKD_GC_MAX_IDLE_S", "DFLOCKD_GC_MAX_UNUSED_TIME"}, kKeys,
        "How long a key may be idle before it is forgotten."),
    number<&Options::max_locks, std::uint64_t, 1, INT32_MAX>(
        "max-locks", {"DFLOCKD_MAX_LOCKS"}, kKeys, "a whole number from 1 to 2147483647",
        "How many keys there may be, locks and semaphores together."),
    limit<&Options::max_waiters>("max-waiters", {"DFLOCKD_MAX_WAITERS"}, kKeys,
                                 "How many may wait in line for one key."),
    boolean<&Options::auto_release_on_disconnect>(
        "auto-release-on-disconnect", {"DFLOCKD_AUTO_RELEASE_ON_DISCONNECT"}, kKeys,
        "Release what a client holds when it disconnects."),

    limit<&Options::max_connections>(
        "max-connections", {"DFLOCKD_MAX_CONNECTIONS"}, kConnections,
        "How many connections there may be; further ones are closed at once."),
    limit<&Options::max_connections_per_ip>("max-connections-per-ip",
                                            {"DFLOCKD_MAX_CONNECTIONS_PER_IP"}, kConnections,
                                            "Likewise, from one address."),
    limit<&Options::max_subscriptions>("max-subscriptions", {"DFLOCKD_MAX_SUBSCRIPTIONS"},
                                       kConnections,
                                       "How many subscriptions one connection may have."),
    seconds<&Options::read_timeout, Zero::refused>(
        "read-timeout", {"DFLOCKD_READ_TIMEOUT_S"}, kConnections,
        "How long a connection may be silent within a request, or while it owns nothing."),
    seconds<&Options::write_timeout, Zero::accepted>(
        "write-timeout", {"DFLOCKD_WRITE_TIMEOUT_S"}, kConnections,
        "How long a reply may stay unsent before the connection is closed; 0 is no limit."),
    seconds<&Options::shutdown_timeout, Zero::accepted>(
        "shutdown-timeout", {"DFLOCKD_SHUTDOWN_TIMEOUT_S"}, kConnections,
        "How long connections may go on after SIGTERM; 0 is no limit."),
    boolean<&Options::detailed_errors>("detailed-errors", {"DFLOCKD_DETAILED_ERRORS"}, kConnections,
                                       "Have `error` replies of the line protocol name a reason."),

    with_default(file<&Options::tls_cert>("tls-cert", {"DFLOCKD_TLS_CERT"}, kAccess,
                                          "The certificate chain, in PEM: turns TLS on. Needs "
                                          "--tls-key. SIGHUP reads both again."),
                 "none"),
    with_default(file<&Options::tls_key>("tls-key", {"DFLOCKD_TLS_KEY"}, kAccess,
                                         "The private key of --tls-cert, in PEM."),
                 "none"),
    with_default(file<&Options::tls_client_ca>("tls-client-ca", {"DFLOCKD_TLS_CLIENT_CA"}, kAccess,
                                               "Require certificates of clients, signed by one of "
                                               "these, in PEM. Ends protected mode."),
                 "none"),
    with_default(
        with_secret(text<&Options::auth_token, parse_token>(
            "auth-token", {"DFLOCKD_AUTH_TOKEN"}, kAccess, "TOKEN",
            "one line of text, not empty, at most 65536 bytes",
            "The secret that clients must know. Ends protected mode. --auth-token-file keeps it "
            "from those who can list processes.")),
        "none"),
    with_default(file<&Options::auth_token_file>(
                     "auth-token-file", {"DFLOCKD_AUTH_TOKEN_FILE"}, kAccess,
                     "The file that holds the token; space around it does not count."),
                 "none"),

    with_default(text<&Options::wal, parse_path>(
                     "wal", {"DFLOCKD_WAL"}, kDurability, "DIRECTORY", "the name of a directory",
                     "Keep locks across restarts, in a log in this directory, which is made if "
                     "absent. One process at a time may use it."),
                 "off"),
    with_print(text<&Options::wal_sync, parse_wal_sync>(
                   "wal-sync", {"DFLOCKD_WAL_SYNC"}, kDurability, "WHEN",
                   "`always`, or an interval more than 0, such as 10ms or 1s",
                   "When the log is made durable: before every reply, or at this interval."),
               [](const Options& options) { return print_wal_sync(options.wal_sync); }),

    text<&Options::log_level, parse_log_level>("log-level", {"DFLOCKD_LOG_LEVEL"}, kLogging,
                                               "LEVEL", "trace, debug, info, warn or error",
                                               "The least important messages to log, on stderr."),
    text<&Options::log_format, parse_log_format>("log-format", {"DFLOCKD_LOG_FORMAT"}, kLogging,
                                                 "FORMAT", "text or json",
                                                 "How a message is written."),
    boolean<&Options::debug>("debug", {"DFLOCKD_DEBUG"}, kLogging,
                             "The same as --log-level debug."),

    with_default(file<&Options::config>("config", {"DFLOCKD_CONFIG"}, kFile,
                                        "A TOML file of settings under the names of the flags. "
                                        "Flags and variables win over it."),
                 "none"),
});

// The same settings, except for how HTTP is reached and what is on by itself.
constexpr auto lockd_server_table() {
  auto table = kDflockd;
  for (Setting& setting : table) {
    if (setting.name == "http-addr") {
      setting.name = "addr";
      setting.alias = "http-addr";
      setting.default_note = "";
    } else if (setting.name == "metrics") {
      setting.default_note = "";
    } else if (setting.name == "port") {
      setting.default_note = "no line port";
    }
  }
  return table;
}

constexpr auto kLockdServer = lockd_server_table();

std::optional<Duration> parse_detect(std::string_view text) {
  const auto detect = parse_seconds(text);
  const bool fits =
      detect && *detect >= std::chrono::milliseconds(300) && *detect <= std::chrono::seconds(60);
  return fits ? detect : std::nullopt;
}

constexpr auto kClusterRows = std::to_array<Setting>({
    with_default(text<&Options::etcd, parse_endpoints>(
                     "etcd", {"DFLOCKD_ETCD"}, kCluster, "ENDPOINTS",
                     "host:port of each member of etcd, separated by commas",
                     "Share locks with other servers through this etcd: one of them leads, the "
                     "others follow and take over."),
                 "off"),
    text<&Options::etcd_cluster, parse_identifier>(
        "etcd-cluster", {"DFLOCKD_ETCD_CLUSTER"}, kCluster, "NAME",
        "1 to 64 letters, digits, dashes, underscores and dots",
        "The servers of one name are one cluster; its keys in etcd begin with /NAME/."),
    with_default(text<&Options::node_id, parse_identifier>(
                     "node-id", {"DFLOCKD_NODE_ID"}, kCluster, "NAME",
                     "1 to 64 letters, digits, dashes, underscores and dots",
                     "What this server is called among them."),
                 "--advertise-addr"),
    with_default(text<&Options::advertise_addr, parse_endpoint>(
                     "advertise-addr", {"DFLOCKD_ADVERTISE_ADDR"}, kCluster, "HOST:PORT",
                     "host:port, with a port from 0 to 65535",
                     "Where clients reach the line port of this server: the others send them here "
                     "while it leads."),
                 "none"),
    [] {
      Setting setting = seconds<&Options::etcd_detect, Zero::refused>(
          "etcd-detect", {"DFLOCKD_ETCD_DETECT_S"}, kCluster,
          "How long nothing may be seen of a leader, while etcd answers, before another takes "
          "over. The same on all servers.");
      setting.assign = [](Options& options, std::string_view text) {
        const auto detect = parse_detect(text);
        if (detect) options.etcd_detect = *detect;
        return detect.has_value();
      };
      setting.rule = "seconds, from 0.3 to 60";
      return setting;
    }(),
    with_default(file<&Options::etcd_ca>("etcd-ca", {"DFLOCKD_ETCD_CA"}, kCluster,
                                         "The authority that etcd's certificates are signed by, in "
                                         "PEM: turns TLS to etcd on."),
                 "none"),
    with_default(file<&Options::etcd_cert>("etcd-cert", {"DFLOCKD_ETCD_CERT"}, kCluster,
                                           "The certificate to show to etcd, in PEM. Needs "
                                           "--etcd-key and --etcd-ca."),
                 "none"),
    with_default(file<&Options::etcd_key>("etcd-key", {"DFLOCKD_ETCD_KEY"}, kCluster,
                                          "The private key of --etcd-cert, in PEM."),
                 "none"),
    with_default(text<&Options::etcd_user, parse_identifier>(
                     "etcd-user", {"DFLOCKD_ETCD_USER"}, kCluster, "NAME",
                     "1 to 64 letters, digits, dashes, underscores and dots",
                     "The user to be at etcd, where a certificate does not say it. Needs "
                     "--etcd-password-file."),
                 "none"),
    with_default(file<&Options::etcd_password_file>(
                     "etcd-password-file", {"DFLOCKD_ETCD_PASSWORD_FILE"}, kCluster,
                     "The file that holds its password; space around it does not count."),
                 "none"),
});

constexpr auto dflockd_ha_table() {
  std::array<Setting, kDflockd.size() + kClusterRows.size()> table{};
  std::copy(kDflockd.begin(), kDflockd.end(), table.begin());
  std::copy(kClusterRows.begin(), kClusterRows.end(), table.begin() + kDflockd.size());
  return table;
}

constexpr auto kDflockdHa = dflockd_ha_table();

}  // namespace

std::span<const Setting> settings(Flavour flavour) {
  switch (flavour) {
    case Flavour::dflockd: return kDflockd;
    case Flavour::lockd_server: return kLockdServer;
    case Flavour::dflockd_ha: return kDflockdHa;
  }
  return {};
}

std::string_view program_name(Flavour flavour) {
  switch (flavour) {
    case Flavour::dflockd: return "dflockd";
    case Flavour::lockd_server: return "lockd-server";
    case Flavour::dflockd_ha: return "dflockd-ha";
  }
  return {};
}

Options default_options(Flavour flavour) {
  Options options;
  if (flavour == Flavour::lockd_server) {
    options.port.reset();
    options.http_addr = Endpoint{.host = {}, .port = 8080};
    options.max_locks = 1'000'000;
  }
  return options;
}

std::string default_text(Flavour flavour, const Setting& setting) {
  if (!setting.default_note.empty()) return std::string(setting.default_note);
  return setting.print(default_options(flavour));
}

const Setting* find_setting(Flavour flavour, std::string_view name) {
  if (name.empty()) return nullptr;
  for (const Setting& setting : settings(flavour)) {
    if (setting.name == name || setting.alias == name) return &setting;
  }
  return nullptr;
}

std::string_view nearest_setting(Flavour flavour, std::string_view name) {
  std::string_view nearest;
  if (name.size() > 100) return nearest;
  std::size_t least = 1 + std::max<std::size_t>(2, name.size() / 3);
  for (const Setting& setting : settings(flavour)) {
    const std::size_t letters = edit_distance(name, setting.name, least);
    if (letters >= least) continue;
    least = letters;
    nearest = setting.name;
  }
  return nearest;
}

std::string bad_value(const Given& given) {
  const Setting& setting = *given.setting;
  return "--" + std::string(setting.name) + " from " + given.origin.name +
         (setting.secret ? " is not valid" : " is " + in_quotes(given.text)) + ": it takes " +
         std::string(setting.rule);
}

}  // namespace lockd
