#include "server/settings/option_table.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

namespace lockd {
namespace {

using config::action;
using config::boolean;
using config::directory;
using config::Example;
using config::file;
using config::in_group;
using config::Nanoseconds;
using config::Note;
using config::Option;
using config::seconds;
using config::Section;
using config::size;
using config::text;
using config::whole;

// --- rules that only servers have ---

// Scheme, host and perhaps port, without a path; or `*`.
bool is_origin(std::string_view text) {
  if (text == "*") return true;
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos || scheme == 0) return false;
  const std::string_view host = text.substr(scheme + 3);
  return !host.empty() && host.find_first_of("/?#@") == std::string_view::npos &&
         text.find_first_of(" \t\r\n") == std::string_view::npos;
}

// Without a port; or `*`.
bool is_host_name(std::string_view text) {
  return text == "*" || config::parse_host(text).has_value();
}

bool is_endpoint(std::string_view text) {
  const auto address = config::parse_address(text);
  return address && !address->host.empty() && address->port != 0;
}

template <auto kIsOne>
std::optional<std::string> parse_list(std::string_view text) {
  for (const std::string_view one : config::split_list(text)) {
    if (!kIsOne(one)) return std::nullopt;
  }
  return std::string(text);
}

std::optional<std::string> parse_endpoint(std::string_view text) {
  const auto address = config::parse_address(text);
  return address ? std::optional(config::print_address(*address)) : std::nullopt;
}

std::optional<std::string> parse_endpoint_or_off(std::string_view text) {
  return text == "off" ? std::optional(std::string(text)) : parse_endpoint(text);
}

// "always", or the time between syncs: "10ms", "1.5s".
std::optional<std::string> parse_wal_sync(std::string_view text) {
  if (text == "always") return std::string(text);
  const auto interval = config::parse_interval(text);
  if (!interval || *interval == Nanoseconds::zero()) return std::nullopt;
  return config::print_interval(*interval);
}

// Part of a key, and of a line.
std::optional<std::string> parse_identifier(std::string_view text) {
  constexpr std::size_t kSizeMax = 64;
  const bool fits = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
  if (!fits || text.empty() || text.size() > kSizeMax) return std::nullopt;
  return std::string(text);
}

constexpr std::string_view kIdentifierRule =
    "1 to 64 letters, digits, dashes, underscores and dots";

// --- rows ---

// Those of dflockd, which are read besides LOCKD_SERVER_<NAME>.
using Variables = std::array<const char*, 3>;

constexpr Nanoseconds kMayBeZero{0};
constexpr Nanoseconds kMoreThanZero{1};

constexpr std::string_view kLimitRule = "a whole number from 0 to 4294967295, where 0 is no limit";

// A count of something, where 0 is no limit.
constexpr Option limit(std::string_view name, std::string_view help,
                       std::string_view by_default = "0", Variables variables = {}) {
  return whole(name, 0, UINT32_MAX,
               {.variables = variables, .rule = kLimitRule, .by_default = by_default}, help);
}

// Leases are given in whole seconds; 0 is no limit.
constexpr Option whole_seconds(std::string_view name, std::string_view help) {
  Option option = whole(
      name, 0, 9'223'372'036,
      {.rule = "whole seconds from 0 to 9223372036, where 0 is no limit", .by_default = "0"}, help);
  option.value = "SECONDS";
  return option;
}

constexpr Option time(std::string_view name, Nanoseconds min, std::string_view by_default,
                      std::string_view help, Variables variables = {}) {
  return seconds(name, min, {.variables = variables, .by_default = by_default}, help);
}

constexpr Option on_or_off(std::string_view name, std::string_view by_default,
                           std::string_view help, Variables variables = {}) {
  return boolean(name, {.variables = variables, .by_default = by_default}, help);
}

constexpr Option optional_file(std::string_view name, std::string_view help,
                               Variables variables = {}) {
  return file(name, {.variables = variables, .default_note = "none"}, help);
}

constexpr auto kListening = in_group(
    "Listening",
    std::to_array<Option>({
        text("host", "ADDRESS",
             {.variables = {"DFLOCKD_HOST"},
              .rule = "an IPv4 or IPv6 address, or a host name",
              .parse = config::parse_host,
              .default_note = "every address"},
             "Address on which the line port listens. Without it, and without an auth token, "
             "--access "
             "or --tls-client-ca, the server is in protected mode: it listens on every address and "
             "serves only loopback peers."),
        whole("port", 0, UINT16_MAX,
              {.variables = {"DFLOCKD_PORT"},
               .rule = "a whole number from 0 to 65535, where 0 picks a free port",
               .by_default = "6388"},
              "Port of the line protocol."),
        text("http-addr", "HOST:PORT",
             {.rule = "host:port, [::1]:port or :port, with a port from 0 to 65535; or off",
              .parse = parse_endpoint_or_off,
              .by_default = "127.0.0.1:8080"},
             "Address on which HTTP and the dashboard listen. :PORT is every address, in protected "
             "mode like the line port."),
        boolean("metrics", {.default_note = "true when HTTP is on"}, "Serve /metrics over HTTP."),
        text("http-allow-origin", "ORIGINS",
             {.rule = "*, or origins such as https://a.example, separated by commas",
              .parse = parse_list<is_origin>,
              .default_note = "none"},
             "Origins whose pages may call HTTP from a browser, besides the server's own."),
        text("http-allow-host", "NAMES",
             {.rule = "*, or host names without a port, separated by commas",
              .parse = parse_list<is_host_name>,
              .repeats = true,
              .default_note = "none"},
             "Host names, besides localhost and addresses, that a Host header may carry over "
             "loopback while the server requires neither an auth token nor client certificates: "
             "those that a proxy passes on."),
        whole("threads", 1, kThreadsMax, {.default_note = "the number of cores"},
              "Number of threads that serve connections."),
    }));

constexpr auto kKeys = in_group(
    "Leases and keys",
    std::to_array<Option>({
        time("default-lease-ttl", kMoreThanZero, "33", "Lease of a request that names none.",
             {"DFLOCKD_DEFAULT_LEASE_TTL_S"}),
        time("lease-sweep-interval", kMoreThanZero, "1",
             "Longest time between two scans for expired leases. Leases end on time whatever the "
             "interval is; dflockd's flag is accepted for compatibility.",
             {"DFLOCKD_LEASE_SWEEP_INTERVAL_S"}),
        time("gc-interval", kMoreThanZero, "5", "Interval between two scans for idle keys.",
             {"DFLOCKD_GC_INTERVAL_S", "DFLOCKD_GC_LOOP_SLEEP"}),
        time("gc-max-idle", kMayBeZero, "60", "Time after which the server forgets an idle key.",
             {"DFLOCKD_GC_MAX_IDLE_S", "DFLOCKD_GC_MAX_UNUSED_TIME"}),
        whole("max-locks", 1, INT32_MAX,
              {.variables = {"DFLOCKD_MAX_LOCKS"}, .by_default = "1000000"},
              "Maximum number of keys, locks and semaphores together."),
        limit("max-waiters", "Maximum number of waiters in the queue of one key. 0: no limit.", "0",
              {"DFLOCKD_MAX_WAITERS"}),
        whole("max-holds", 0, UINT32_MAX,
              {.rule = "a whole number from 0 to 4294967295, where 0 is no limit",
               .by_default = "10000000"},
              "Maximum number of holds and queue places of all keys together. 0: no limit."),
        limit("max-holds-per-client",
              "Maximum number of holds and queue places of one connection of the line port, or of "
              "one "
              "holder name over HTTP. 0: no limit."),
        whole_seconds(
            "max-lease-ttl",
            "Maximum lease. Longer requests are granted this value, not rejected. 0: no limit."),
        time("max-set-wait", kMoreThanZero, "600",
             "Longest time that a request for several keys may wait in their queues. Longer waits "
             "are cut to this value."),
        whole("fence-floor", 0, kFenceMax,
              {.rule = "a whole number from 0 to 9007199254740991", .by_default = "0"},
              "Issue only fences larger than N. Use it when the protected resources have already "
              "seen fences from another server."),
        on_or_off("auto-release-on-disconnect", "true",
                  "Release the holds of a line connection when it ends.",
                  {"DFLOCKD_AUTO_RELEASE_ON_DISCONNECT"}),
    }));

constexpr auto kConnections = in_group(
    "Connections",
    std::to_array<Option>({
        whole("max-connections", 0, UINT32_MAX,
              {.variables = {"DFLOCKD_MAX_CONNECTIONS"},
               .rule = kLimitRule,
               .default_note = "what the limit on open files allows, less a reserve"},
              "Maximum number of connections. Further ones are closed at once. 0: no limit."),
        limit("max-connections-per-ip",
              "Maximum number of connections from one client address. 0: no limit.", "0",
              {"DFLOCKD_MAX_CONNECTIONS_PER_IP"}),
        limit("max-subscriptions",
              "Maximum number of subscriptions of one connection. 0: no limit.", "10000",
              {"DFLOCKD_MAX_SUBSCRIPTIONS"}),
        limit("max-watchers", "Maximum number of event streams (GET /v1/events). 0: no limit.",
              "1000"),
        size("max-buffer-memory", 0,
             {.rule = "a number of bytes, or one with KiB, MiB or GiB, where 0 is no limit",
              .default_note = "a quarter of the memory, at most 1GiB"},
             "Maximum memory of all connections together for unread input, unsent output and "
             "bodies. Beyond it the server rejects new bodies and closes the connections that use "
             "the most."),
        time("read-timeout", kMoreThanZero, "23",
             "Longest time from the first byte of a request to its last, and longest silence of a "
             "connection that holds nothing and waits for nothing.",
             {"DFLOCKD_READ_TIMEOUT_S"}),
        time("write-timeout", kMayBeZero, "5",
             "Time after which the server closes a connection that does not read its replies. "
             "0: no limit.",
             {"DFLOCKD_WRITE_TIMEOUT_S"}),
        time("shutdown-timeout", kMayBeZero, "30",
             "Longest time that holders may keep their connections after SIGTERM. 0: no limit.",
             {"DFLOCKD_SHUTDOWN_TIMEOUT_S"}),
        on_or_off("detailed-errors", "false",
                  "Name the reason in `error` replies of the line protocol.",
                  {"DFLOCKD_DETAILED_ERRORS"}),
        on_or_off(
            "close-on-violation", "true",
            "Close a connection that breaks a rule of the line protocol, which releases its holds. "
            "Otherwise the reply is `error` and the connection stays open, except after an "
            "overlong line, an incomplete request or an HTTP request."),
    }));

constexpr auto kAccess = in_group(
    "Access",
    std::to_array<Option>({
        optional_file("tls-cert",
                      "Certificate chain in PEM. Turns TLS on; needs --tls-key. SIGHUP reads both "
                      "files again.",
                      {"DFLOCKD_TLS_CERT"}),
        optional_file("tls-key", "Private key of --tls-cert, in PEM.", {"DFLOCKD_TLS_KEY"}),
        optional_file("tls-client-ca",
                      "Authorities, in PEM, one of which must have signed the certificate of every "
                      "client. Ends protected mode.",
                      {"DFLOCKD_TLS_CLIENT_CA"}),
        text("auth-token", "TOKEN",
             {.variables = {"DFLOCKD_AUTH_TOKEN"},
              .rule = "one line of text, not empty, at most 65536 bytes",
              .parse = config::parse_token,
              .secret = true,
              .default_note = "none"},
             "Auth token: a secret that clients must present. Ends protected mode. Prefer "
             "--auth-token-file: other users of the machine can list the arguments of a process."),
        optional_file(
            "auth-token-file",
            "File that holds the auth token in one line, or two auth tokens in two lines while "
            "clients change from one to the other. Space around a token does not count. SIGHUP "
            "reads the file again.",
            {"DFLOCKD_AUTH_TOKEN_FILE"}),
        optional_file("access",
                      "File that lists auth tokens and client certificates with their rights and "
                      "keys: see docs/security.md. Ends protected mode. SIGHUP reads the file "
                      "again."),
        time("auth-timeout", kMoreThanZero, "10",
             "Time within which a new connection must finish its TLS handshake and, if the server "
             "requires one, present a valid auth token."),
        whole("max-unauthenticated", 0, UINT32_MAX, {.rule = kLimitRule, .by_default = "1000"},
              "Maximum number of unauthenticated connections. One more closes the oldest of them. "
              "If not given, at most half of --max-connections. 0: no limit."),
    }));

constexpr auto kDurability = in_group(
    "Durability",
    std::to_array<Option>({
        directory("wal", {.by_default = "lockd-data"},
                  "Directory of the journal, which keeps locks across restarts. It is created if "
                  "absent; one process at a time may use it. Fences of a new journal begin at 1: "
                  "set --fence-floor if larger ones were issued without it."),
        on_or_off("memory", "false",
                  "Keep locks in memory only, without a journal: a restart forgets them."),
        text("wal-sync", "WHEN",
             {.rule = "`always`, or an interval more than 0, such as 10ms or 1s",
              .parse = parse_wal_sync,
              .by_default = "always"},
             "When the journal is made durable: before every reply, or at this interval."),
    }));

constexpr auto kWatching = in_group(
    "Watching",
    std::to_array<Option>({
        size("history", 0,
             {.rule = "a number of bytes, or one with KiB, MiB or GiB, where 0 is off",
              .by_default = "16MiB"},
             "Memory for the history of keys and of the server (GET /v1/history). A quarter of it "
             "is "
             "reserved for rare events. Sizes below 1MiB count as 1MiB."),
        time("slow-wait", kMayBeZero, "0",
             "Time after which a wait in a queue is logged and recorded as slow. 0: never."),
        time("slow-hold", kMayBeZero, "0",
             "Time after which a hold is logged and recorded as slow. 0: never."),
    }));

constexpr auto kLogging = in_group(
    "Logging",
    std::to_array<Option>({
        text("log-level", "LEVEL", {.choices = "trace debug info warn error", .by_default = "info"},
             "Least important level of messages that are logged, on standard error."),
        text("log-format", "FORMAT", {.choices = "text json", .by_default = "text"},
             "Format of log messages."),
        on_or_off("debug", "false", "The same as --log-level debug.", {"DFLOCKD_DEBUG"}),
    }));

constexpr auto kFile = in_group(
    "Configuration file",
    std::to_array<Option>({
        optional_file("config",
                      "TOML file of settings under the names of the flags. Flags and variables win "
                      "over the file."),
    }));

constexpr auto kCluster = in_group(
    "Cluster",
    std::to_array<Option>({
        text("etcd", "ENDPOINTS",
             {.rule = "host:port of each member of etcd, separated by commas",
              .parse = parse_list<is_endpoint>,
              .default_note = "off"},
             "Share locks with other servers through this etcd: one of them leads, the others "
             "follow and take over."),
        text("etcd-cluster", "NAME",
             {.rule = kIdentifierRule, .parse = parse_identifier, .by_default = "lockd"},
             "The servers of one name are one cluster; its keys in etcd begin with /NAME/."),
        text("node-id", "NAME",
             {.rule = kIdentifierRule,
              .parse = parse_identifier,
              .default_note = "--advertise-addr"},
             "Name of this server in the cluster."),
        text("advertise-addr", "HOST:PORT",
             {.rule = "host:port, with a port from 0 to 65535",
              .parse = parse_endpoint,
              .default_note = "none"},
             "Address at which clients reach the line port of this server. Other servers of the "
             "cluster send clients there while this server leads."),
        seconds("etcd-detect", std::chrono::milliseconds(300),
                {.max = 60'000'000'000, .by_default = "2"},
                "Time without a sign of the leader, while etcd answers, after which another server "
                "takes over. The leader's value is in force."),
        whole("etcd-priority", 0, 10, {.rule = "a whole number from 0 to 10", .by_default = "10"},
              "Priority in elections. Servers of priority 10 stand for election at once; each step "
              "below waits a fifth of --etcd-detect longer."),
        optional_file(
            "etcd-ca",
            "Authority, in PEM, that signed the certificates of etcd. Turns on TLS to etcd."),
        optional_file("etcd-cert",
                      "Client certificate for etcd, in PEM. Needs --etcd-key and --etcd-ca."),
        optional_file("etcd-key", "Private key of --etcd-cert, in PEM."),
        text("etcd-user", "NAME",
             {.rule = kIdentifierRule, .parse = parse_identifier, .default_note = "none"},
             "User name at etcd, if a certificate does not name the user. Needs "
             "--etcd-password-file."),
        optional_file(
            "etcd-password-file",
            "File that holds the password of --etcd-user; space around it does not count."),
        optional_file("cluster-secret-file",
                      "File that holds the secret by which the servers of a cluster recognize each "
                      "other, at least 16 characters. Without it the servers forward nothing."),
        on_or_off("forward", "true",
                  "Forward requests to the leader while another server leads. Otherwise clients "
                  "are told the address of the leader. Needs --cluster-secret-file."),
        seconds("forward-timeout", Duration::zero(), {.max = 60'000'000'000, .by_default = "2"},
                "Time that a client of a follower waits for a leader before its request is "
                "answered error_not_leader, over HTTP 503 not_leader. 0: no time."),
    }));

constexpr auto kActions =
    in_group("Instead of serving",
             std::to_array<Option>({
                 config::kHelp,
                 config::kVersion,
                 action("check-config", 0,
                        "Check the settings, print each one with its value and source, and exit."),
             }));

constexpr auto kCopies = in_group(
    "Instead of serving",
    std::to_array<Option>({
        directory("export", {},
                  "Write the holds of the cluster into this directory, new or empty, as a journal "
                  "for --wal, and exit. Needs --etcd."),
        directory("import", {},
                  "Create the cluster from the journal in this directory, if there is none yet, "
                  "and exit. Needs --etcd."),
    }));

// --- profiles ---

using VariableName = std::array<char, 64>;

// LOCKD_SERVER_MAX_LOCKS for max-locks.
constexpr VariableName variable_name(std::string_view option) {
  VariableName name{};
  auto end = std::ranges::copy(kServerVariables, name.begin()).out;
  for (const char c : option) *end++ = c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  return name;
}

constexpr auto kSettings =
    joined(kListening, kKeys, kConnections, kAccess, kDurability, kWatching, kLogging, kFile);
constexpr auto kClusterSettings = joined(kSettings, kCluster);

constexpr auto kVariableNames = [] {
  std::array<VariableName, kClusterSettings.size()> names{};
  std::ranges::transform(kClusterSettings, names.begin(), variable_name, &Option::name);
  return names;
}();

// Settings, which are the first of kClusterSettings, with their own variables before dflockd's.
template <std::size_t kSize>
constexpr std::array<Option, kSize> with_variables(std::array<Option, kSize> settings) {
  for (std::size_t i = 0; i < kSize; ++i) {
    auto& variables = settings[i].variables;
    std::rotate(variables.begin(), variables.end() - 1, variables.end());
    variables[0] = kVariableNames[i].data();
  }
  return settings;
}

constexpr auto kLockd = joined(with_variables(kSettings), kActions);
constexpr auto kLockdHa = joined(with_variables(kClusterSettings), kActions, kCopies);

// What a profile changes: a default, or what is said in its place.
struct Change {
  std::string_view name;
  std::string_view by_default;
  std::string_view default_note = {};
};

constexpr auto changed(std::span<const Change> changes) {
  auto table = kLockd;
  for (const Change& change : changes) {
    Option& option = *std::ranges::find(table, change.name, &Option::name);
    option.by_default = change.by_default;
    option.default_note = change.default_note;
  }
  return table;
}

constexpr auto kDflockdChanges = std::to_array<Change>({
    {"http-addr", "", "off"},
    {"max-locks", "1024"},
    {"wal", "", "off"},
});
constexpr auto kDflockd = changed(kDflockdChanges);

constexpr auto kLockdServerChanges = std::to_array<Change>({
    {"port", "", "no line port"},
    {"http-addr", ":8080"},
    {"metrics", "false"},
    {"wal", "", "off"},
});
constexpr auto kLockdServer = [] {
  auto table = changed(kLockdServerChanges);
  Option& addr = *std::ranges::find(table, "http-addr", &Option::name);
  addr.name = "addr";
  addr.alias = "http-addr";
  return table;
}();

// --- what their manuals say besides ---

constexpr std::string_view kDescription =
    "A server for locks and semaphores with leases and fencing tokens. Every setting is a flag, an "
    "environment variable and a name in the file of --config. Flags win over variables, and "
    "variables over the file. A flag takes one or two dashes, and its value in the next word or "
    "after =. A boolean takes --flag, --no-flag or --flag=VALUE, where the value is true or false, "
    "1 or 0, yes or no, on or off.";

constexpr std::string_view kDflockdDescription =
    "The server lockd with the defaults and the letter of dflockd. Every setting is a flag, an "
    "environment variable and a name in the file of --config. Variables win over flags, and flags "
    "over the file. A flag takes one or two dashes, and its value in the next word or after =. A "
    "boolean takes --flag, --no-flag or --flag=VALUE, where the value is true or false, 1 or 0, "
    "yes "
    "or no, on or off.";

constexpr auto kExits = std::to_array<Note>({
    {"0", "The server stopped when asked to, or carried out an action instead of serving."},
    {"1",
     "A setting is wrong, a port is in use, or the journal is damaged or has failed. One line on "
     "standard error names the cause."},
});

constexpr auto kSignals = std::to_array<Note>({
    {"SIGTERM, SIGINT",
     "Graceful shutdown: grant no more and close connections that hold nothing, while holders may "
     "still renew and release. The server stops when no holder is left, after --shutdown-timeout, "
     "or at a second signal."},
    {"SIGHUP",
     "Read certificates, --auth-token-file and --access again. Open connections keep the "
     "certificates and the auth token that they began with; rights that --access takes away end at "
     "once."},
});

constexpr auto kLockdFiles = std::to_array<Note>({
    {"/etc/lockd/lockd.toml", "Settings of the service lockd.service."},
    {"/var/lib/lockd", "Journal of the service: its holds, across restarts."},
});
constexpr auto kLockdHaFiles = std::to_array<Note>({
    {"/etc/lockd/lockd-ha.toml", "Settings of the service lockd-ha.service."},
});

constexpr auto kSections = std::to_array<Section>({{"Signals", kSignals}});
constexpr auto kLockdSections =
    std::to_array<Section>({{"Signals", kSignals}, {"Files", kLockdFiles}});
constexpr auto kLockdHaSections =
    std::to_array<Section>({{"Signals", kSignals}, {"Files", kLockdHaFiles}});

constexpr auto kLockdExamples = std::to_array<Example>({
    {"lockd", "Serve this machine on port 6388 and over HTTP, with the journal in ./lockd-data."},
    {"lockd --auth-token-file token --http-addr :8080 --wal /var/lib/lockd",
     "Serve every client that presents the auth token, also from other machines."},
});
constexpr auto kDflockdExamples = std::to_array<Example>({
    {"dflockd --host 127.0.0.1 --max-waiters 100", "Serve as dflockd does, without a journal."},
});
constexpr auto kLockdServerExamples = std::to_array<Example>({
    {"lockd-server -addr :8080 -wal locks -metrics", "Serve HTTP, with a journal and metrics."},
});
constexpr auto kLockdHaExamples = std::to_array<Example>({
    {"lockd-ha --etcd 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 \\\n"
     "  --host 0.0.0.0 --auth-token-file token --advertise-addr 10.0.0.11:6388",
     "Run one of several servers that share an etcd of three members."},
    {"lockd-ha --etcd 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 --export backup",
     "Back up the holds of the cluster."},
});

constexpr config::Command kLockdProgram{
    .name = "lockd",
    .summary =
        "distributed lock server: FIFO locks and semaphores, over the line protocol and HTTP",
    .description = kDescription,
    .options = kLockd,
    .exits = kExits,
    .sections = kLockdSections,
    .examples = kLockdExamples,
    .see_also = "dflockd lockd-server lockctl"};
constexpr config::Command kDflockdProgram{
    .name = "dflockd",
    .summary = "lock server lockd with the defaults of dflockd, over the line protocol",
    .description = kDflockdDescription,
    .options = kDflockd,
    .exits = kExits,
    .sections = kSections,
    .examples = kDflockdExamples,
    .see_also = "lockd lockctl"};
constexpr config::Command kLockdServerProgram{.name = "lockd-server",
                                              .summary = "lock server lockd over HTTP alone",
                                              .description = kDescription,
                                              .options = kLockdServer,
                                              .exits = kExits,
                                              .sections = kSections,
                                              .examples = kLockdServerExamples,
                                              .see_also = "lockd lockctl"};
constexpr config::Command kLockdHaProgram{
    .name = "lockd-ha",
    .summary = "distributed lock server lockd, several of which share an etcd",
    .description = kDescription,
    .options = kLockdHa,
    .exits = kExits,
    .sections = kLockdHaSections,
    .examples = kLockdHaExamples,
    .see_also = "lockd lockctl"};

}  // namespace

Profile profile_of(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);
  if (program == kDflockdProgram.name) return Profile::dflockd;
  if (program == kLockdServerProgram.name) return Profile::lockd_server;
  return Profile::lockd;
}

const config::Command& program(Profile profile) {
  switch (profile) {
    case Profile::dflockd: return kDflockdProgram;
    case Profile::lockd_server: return kLockdServerProgram;
    case Profile::lockd_ha: return kLockdHaProgram;
    case Profile::lockd: break;
  }
  return kLockdProgram;
}

std::span<const Option> settings(Profile profile) {
  const auto all = program(profile).options;
  const auto end = std::ranges::find_if_not(all, &Option::is_setting);
  return all.first(static_cast<std::size_t>(end - all.begin()));
}

config::Precedence precedence(Profile profile) {
  return profile == Profile::dflockd ? config::Precedence::environment
                                     : config::Precedence::command_line;
}

}  // namespace lockd
