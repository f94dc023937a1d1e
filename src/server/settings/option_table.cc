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

using Variables = std::array<const char*, 2>;

constexpr Nanoseconds kMayBeZero{0};
constexpr Nanoseconds kMoreThanZero{1};

constexpr std::string_view kLimitRule = "a whole number from 0 to 4294967295, where 0 is no limit";

// A count of something, where 0 is no limit.
constexpr Option limit(std::string_view name, const char* variable, std::string_view help,
                       std::string_view by_default = "0") {
  return whole(name, 0, UINT32_MAX,
               {.variables = {variable}, .rule = kLimitRule, .by_default = by_default}, help);
}

// Leases are told in whole seconds; 0 is no limit.
constexpr Option whole_seconds(std::string_view name, const char* variable, std::string_view help) {
  Option option = whole(name, 0, 9'223'372'036,
                        {.variables = {variable},
                         .rule = "whole seconds from 0 to 9223372036, where 0 is no limit",
                         .by_default = "0"},
                        help);
  option.value = "SECONDS";
  return option;
}

constexpr Option time(std::string_view name, Variables variables, Nanoseconds min,
                      std::string_view by_default, std::string_view help) {
  return seconds(name, min, {.variables = variables, .by_default = by_default}, help);
}

constexpr Option on_or_off(std::string_view name, const char* variable, std::string_view by_default,
                           std::string_view help) {
  return boolean(name, {.variables = {variable}, .by_default = by_default}, help);
}

constexpr Option optional_file(std::string_view name, const char* variable, std::string_view help) {
  return file(name, {.variables = {variable}, .default_note = "none"}, help);
}

constexpr auto kListening = in_group(
    "Listening",
    std::to_array<Option>({
        text("host", "ADDRESS",
             {.variables = {"DFLOCKD_HOST"},
              .rule = "an IPv4 or IPv6 address, or a host name",
              .parse = config::parse_host,
              .default_note = "every address"},
             "Where the line port listens. Until one is chosen, or an auth token or client CA is "
             "set, "
             "only loopback peers are served: protected mode."),
        whole("port", 0, UINT16_MAX,
              {.variables = {"DFLOCKD_PORT"},
               .rule = "a whole number from 0 to 65535, where 0 picks a free port",
               .by_default = "6388"},
              "The port of the line protocol."),
        text("http-addr", "HOST:PORT",
             {.variables = {"DFLOCKD_HTTP_ADDR"},
              .rule = "host:port, [::1]:port or :port, with a port from 0 to 65535",
              .parse = parse_endpoint,
              .default_note = "off"},
             "Where HTTP listens. :PORT is every address, in protected mode like the line port."),
        boolean("metrics",
                {.variables = {"DFLOCKD_METRICS"}, .default_note = "true when HTTP is on"},
                "Serve /metrics over HTTP."),
        text("http-allow-origin", "ORIGINS",
             {.variables = {"DFLOCKD_HTTP_ALLOW_ORIGIN"},
              .rule = "*, or origins such as https://a.example, separated by commas",
              .parse = parse_list<is_origin>,
              .default_note = "none"},
             "Whose pages may call HTTP from a browser, besides the server's own."),
        text("http-allow-host", "NAMES",
             {.variables = {"DFLOCKD_HTTP_ALLOW_HOST"},
              .rule = "*, or host names without a port, separated by commas",
              .parse = parse_list<is_host_name>,
              .repeats = true,
              .default_note = "none"},
             "By what names, besides localhost and addresses, HTTP may be asked over loopback "
             "while neither an auth token nor client certificates are asked for: those that a "
             "proxy passes on in Host."),
        whole("threads", 1, kThreadsMax,
              {.variables = {"DFLOCKD_THREADS"}, .default_note = "the number of cores"},
              "How many threads serve connections."),
    }));

constexpr auto kKeys = in_group(
    "Leases and keys",
    std::to_array<Option>({
        time("default-lease-ttl", {"DFLOCKD_DEFAULT_LEASE_TTL_S"}, kMoreThanZero, "33",
             "The lease of a request that names none."),
        time("lease-sweep-interval", {"DFLOCKD_LEASE_SWEEP_INTERVAL_S"}, kMoreThanZero, "1",
             "The longest time between two looks for leases that have ended. They end exactly on "
             "time whatever this says."),
        time("gc-interval", {"DFLOCKD_GC_INTERVAL_S", "DFLOCKD_GC_LOOP_SLEEP"}, kMoreThanZero, "5",
             "How often idle keys are looked for."),
        time("gc-max-idle", {"DFLOCKD_GC_MAX_IDLE_S", "DFLOCKD_GC_MAX_UNUSED_TIME"}, kMayBeZero,
             "60", "How long a key may be idle before it is forgotten."),
        whole("max-locks", 1, INT32_MAX, {.variables = {"DFLOCKD_MAX_LOCKS"}, .by_default = "1024"},
              "How many keys there may be, locks and semaphores together."),
        limit("max-waiters", "DFLOCKD_MAX_WAITERS", "How many may wait in the queue of one key."),
        whole("max-holds", 0, UINT32_MAX,
              {.variables = {"DFLOCKD_MAX_HOLDS"},
               .rule = "a whole number from 0 to 4294967295, where 0 is no limit",
               .by_default = "10000000"},
              "How many holds and places in queues there may be, of all keys together."),
        limit("max-holds-per-client", "DFLOCKD_MAX_HOLDS_PER_CLIENT",
              "Likewise, of one connection of the line port, or one holder's name over HTTP."),
        whole_seconds("max-lease-ttl", "DFLOCKD_MAX_LEASE_TTL_S",
                      "The longest lease: a longer one that is asked for is granted this much."),
        time(
            "max-set-wait", {"DFLOCKD_MAX_SET_WAIT_S"}, kMoreThanZero, "600",
            "How long a request for several keys may wait in their queues: a longer wait is cut to "
            "this."),
        whole("fence-floor", 0, kFenceMax,
              {.variables = {"DFLOCKD_FENCE_FLOOR"},
               .rule = "a whole number from 0 to 9007199254740991",
               .by_default = "0"},
              "Every fence that is granted is larger than this: for resources that have seen those "
              "of another server."),
        on_or_off("auto-release-on-disconnect", "DFLOCKD_AUTO_RELEASE_ON_DISCONNECT", "true",
                  "Release what a client holds when it disconnects."),
    }));

constexpr auto kConnections = in_group(
    "Connections",
    std::to_array<Option>({
        whole("max-connections", 0, UINT32_MAX,
              {.variables = {"DFLOCKD_MAX_CONNECTIONS"},
               .rule = kLimitRule,
               .default_note = "what the limit on open files allows, less a reserve"},
              "How many connections there may be; further ones are closed at once."),
        limit("max-connections-per-ip", "DFLOCKD_MAX_CONNECTIONS_PER_IP",
              "Likewise, from one address."),
        limit("max-subscriptions", "DFLOCKD_MAX_SUBSCRIPTIONS",
              "How many subscriptions one connection may have.", "10000"),
        limit("max-watchers", "DFLOCKD_MAX_WATCHERS",
              "How many streams of events there may be: GET /v1/events.", "1000"),
        size("max-buffer-memory", 0,
             {.variables = {"DFLOCKD_MAX_BUFFER_MEMORY"},
              .rule = "a number of bytes, or one with KiB, MiB or GiB, where 0 is no limit",
              .default_note = "a quarter of the memory, at most 1GiB"},
             "How much memory all connections together may have for input that is not read yet, "
             "output that is not sent yet, and bodies. Over it new bodies are refused, and the "
             "connections that have most are closed."),
        time("read-timeout", {"DFLOCKD_READ_TIMEOUT_S"}, kMoreThanZero, "23",
             "How long a request may take from its first byte to its last, and how long a "
             "connection that owns nothing may be silent."),
        time("write-timeout", {"DFLOCKD_WRITE_TIMEOUT_S"}, kMayBeZero, "5",
             "How long a reply may stay unsent before the connection is closed; 0 is no limit."),
        time("shutdown-timeout", {"DFLOCKD_SHUTDOWN_TIMEOUT_S"}, kMayBeZero, "30",
             "How long connections that hold something may go on after SIGTERM; 0 is no limit."),
        on_or_off("detailed-errors", "DFLOCKD_DETAILED_ERRORS", "false",
                  "Have `error` replies of the line protocol name a reason."),
        on_or_off(
            "close-on-violation", "DFLOCKD_CLOSE_ON_VIOLATION", "true",
            "Close a connection that breaks a rule of the line protocol, which releases what "
            "it holds. Without it `error` is answered, and the connection goes on; a line "
            "that is too long, a request that is not whole in time and a request of HTTP close it "
            "all the same."),
    }));

constexpr auto kAccess = in_group(
    "Access",
    std::to_array<Option>({
        optional_file("tls-cert", "DFLOCKD_TLS_CERT",
                      "The certificate chain, in PEM: turns TLS on. Needs --tls-key. SIGHUP reads "
                      "both again."),
        optional_file("tls-key", "DFLOCKD_TLS_KEY", "The private key of --tls-cert, in PEM."),
        optional_file("tls-client-ca", "DFLOCKD_TLS_CLIENT_CA",
                      "Require certificates of clients, signed by one of these, in PEM. Ends "
                      "protected mode."),
        text("auth-token", "TOKEN",
             {.variables = {"DFLOCKD_AUTH_TOKEN"},
              .rule = "one line of text, not empty, at most 65536 bytes",
              .parse = config::parse_token,
              .secret = true,
              .default_note = "none"},
             "The auth token, a secret that clients must know. Ends protected mode. "
             "--auth-token-file keeps it "
             "from those who can list processes."),
        optional_file(
            "auth-token-file", "DFLOCKD_AUTH_TOKEN_FILE",
            "The file that holds the auth token; space around it does not count. Of two lines both "
            "are good, so that clients change one after the other. SIGHUP reads it "
            "again."),
        optional_file("access", "DFLOCKD_ACCESS",
                      "The file that says which auth tokens and client certificates may do what, "
                      "with which keys: see docs/security.md. Ends protected mode. SIGHUP reads it "
                      "again."),
        time("auth-timeout", {"DFLOCKD_AUTH_TIMEOUT_S"}, kMoreThanZero, "10",
             "How long a new connection has for its TLS handshake and, where one is asked for, to "
             "present a good auth token."),
        whole("max-unauthenticated", 0, UINT32_MAX,
              {.variables = {"DFLOCKD_MAX_UNAUTHENTICATED"},
               .rule = kLimitRule,
               .by_default = "1000"},
              "How many connections there may be that have not done so; the one that came first is "
              "closed for one more. When not given, at most half of --max-connections."),
    }));

constexpr auto kDurability = in_group(
    "Durability",
    std::to_array<Option>({
        directory("wal", {.variables = {"DFLOCKD_WAL"}, .default_note = "off"},
                  "Keep locks across restarts, in a log in this directory, which is made if "
                  "absent. One process at a time may use it. In a new one fences begin at 1: where "
                  "larger ones were granted without it, set --fence-floor."),
        text("wal-sync", "WHEN",
             {.variables = {"DFLOCKD_WAL_SYNC"},
              .rule = "`always`, or an interval more than 0, such as 10ms or 1s",
              .parse = parse_wal_sync,
              .by_default = "always"},
             "When the log is made durable: before every reply, or at this interval."),
    }));

constexpr auto kWatching = in_group(
    "Watching",
    std::to_array<Option>({
        size("history", 0,
             {.variables = {"DFLOCKD_HISTORY"},
              .rule = "a number of bytes, or one with KiB, MiB or GiB, where 0 is off",
              .by_default = "16MiB"},
             "How much is kept, in memory, of what happened to keys and to the server: "
             "GET /v1/history. A quarter of it is for what is rare. Less than 1MiB counts as "
             "that much."),
        time("slow-wait", {"DFLOCKD_SLOW_WAIT_S"}, kMayBeZero, "0",
             "How long a wait in a queue may last before it is logged and recorded as slow; 0 is "
             "off."),
        time("slow-hold", {"DFLOCKD_SLOW_HOLD_S"}, kMayBeZero, "0",
             "How long a lock or permit may be held before that is logged and recorded as slow; 0 "
             "is off."),
    }));

constexpr auto kLogging = in_group(
    "Logging",
    std::to_array<Option>({
        text("log-level", "LEVEL",
             {.variables = {"DFLOCKD_LOG_LEVEL"},
              .choices = "trace debug info warn error",
              .by_default = "info"},
             "The least important messages to log, on stderr."),
        text("log-format", "FORMAT",
             {.variables = {"DFLOCKD_LOG_FORMAT"}, .choices = "text json", .by_default = "text"},
             "How a message is written."),
        on_or_off("debug", "DFLOCKD_DEBUG", "false", "The same as --log-level debug."),
    }));

constexpr auto kFile = in_group(
    "Configuration file",
    std::to_array<Option>({
        optional_file("config", "DFLOCKD_CONFIG",
                      "A TOML file of settings under the names of the flags. Flags and variables "
                      "win over it."),
    }));

constexpr auto kCluster = in_group(
    "Cluster",
    std::to_array<Option>({
        text("etcd", "ENDPOINTS",
             {.variables = {"DFLOCKD_ETCD"},
              .rule = "host:port of each member of etcd, separated by commas",
              .parse = parse_list<is_endpoint>,
              .default_note = "off"},
             "Share locks with other servers through this etcd: one of them leads, the others "
             "follow and take over."),
        text("etcd-cluster", "NAME",
             {.variables = {"DFLOCKD_ETCD_CLUSTER"},
              .rule = kIdentifierRule,
              .parse = parse_identifier,
              .by_default = "lockd"},
             "The servers of one name are one cluster; its keys in etcd begin with /NAME/."),
        text("node-id", "NAME",
             {.variables = {"DFLOCKD_NODE_ID"},
              .rule = kIdentifierRule,
              .parse = parse_identifier,
              .default_note = "--advertise-addr"},
             "What this server is called among them."),
        text("advertise-addr", "HOST:PORT",
             {.variables = {"DFLOCKD_ADVERTISE_ADDR"},
              .rule = "host:port, with a port from 0 to 65535",
              .parse = parse_endpoint,
              .default_note = "none"},
             "Where clients reach the line port of this server: the others send them here while it "
             "leads."),
        seconds("etcd-detect", std::chrono::milliseconds(300),
                {.variables = {"DFLOCKD_ETCD_DETECT_S"}, .max = 60'000'000'000, .by_default = "2"},
                "How long nothing may be seen of a leader, while etcd answers, before another "
                "takes over. The leader's is in force."),
        whole("etcd-priority", 0, 10,
              {.variables = {"DFLOCKD_ETCD_PRIORITY"},
               .rule = "a whole number from 0 to 10",
               .by_default = "10"},
              "When there is no leader, those of 10 stand for election at once; each step below "
              "waits a fifth of --etcd-detect longer."),
        optional_file("etcd-ca", "DFLOCKD_ETCD_CA",
                      "The authority that etcd's certificates are signed by, in PEM: turns TLS to "
                      "etcd on."),
        optional_file("etcd-cert", "DFLOCKD_ETCD_CERT",
                      "The certificate to show to etcd, in PEM. Needs --etcd-key and --etcd-ca."),
        optional_file("etcd-key", "DFLOCKD_ETCD_KEY", "The private key of --etcd-cert, in PEM."),
        text("etcd-user", "NAME",
             {.variables = {"DFLOCKD_ETCD_USER"},
              .rule = kIdentifierRule,
              .parse = parse_identifier,
              .default_note = "none"},
             "The user to be at etcd, where a certificate does not say it. Needs "
             "--etcd-password-file."),
        optional_file("etcd-password-file", "DFLOCKD_ETCD_PASSWORD_FILE",
                      "The file that holds its password; space around it does not count."),
        optional_file("cluster-secret-file", "DFLOCKD_CLUSTER_SECRET_FILE",
                      "The file that holds the secret by which the servers of a cluster know each "
                      "other, of 16 characters or more. Without it nothing is forwarded."),
        on_or_off("forward", "DFLOCKD_FORWARD", "true",
                  "While another server leads, pass requests on to it. Without it clients are told "
                  "where it is. Needs --cluster-secret-file."),
    }));

constexpr auto kActions = in_group(
    "Instead of serving",
    std::to_array<Option>({
        config::kHelp,
        config::kVersion,
        action("check-config", 0, "Say whether the settings are valid, and exit."),
        action("print-config", 0, "Print every setting in force and where it came from, and exit."),
    }));

constexpr auto kCopies = in_group(
    "Instead of serving",
    std::to_array<Option>({
        directory("export", {},
                  "Write what the cluster holds into this directory, new or empty, as a journal "
                  "that --wal takes, and exit. Needs --etcd."),
        directory("import", {},
                  "Begin the cluster, where there is none, with what the journal in this "
                  "directory holds, and exit. Needs --etcd."),
    }));

constexpr auto kCommon =
    joined(kListening, kKeys, kConnections, kAccess, kDurability, kWatching, kLogging, kFile);
constexpr auto kDflockd = joined(kCommon, kActions);
constexpr auto kDflockdHa = joined(kCommon, kCluster, kActions, kCopies);

// The same settings, except for how HTTP is reached and what is on by itself.
constexpr auto kLockdServer = [] {
  auto table = kDflockd;
  for (Option& option : table) {
    if (option.name == "http-addr") {
      option.name = "addr";
      option.alias = "http-addr";
      option.by_default = ":8080";
      option.default_note = "";
    } else if (option.name == "metrics") {
      option.by_default = "false";
      option.default_note = "";
    } else if (option.name == "port") {
      option.by_default = "";
      option.default_note = "no line port";
    } else if (option.name == "max-locks") {
      option.by_default = "1000000";
    }
  }
  return table;
}();

// --- what their manuals say besides ---

constexpr std::string_view kDescription =
    "A server for locks and semaphores with leases and fences. Every setting is a flag, a variable "
    "of the environment and a name in the file of --config; the environment wins over flags, and "
    "flags over the file. A flag takes one or two dashes, and its value in the next word or after "
    "=. A boolean takes --flag, --no-flag or --flag=VALUE, where the value is true or false, 1 or "
    "0, yes or no, on or off.";

constexpr auto kExits = std::to_array<Note>({
    {"0", "It was asked to stop, and did; or what it was asked for instead of serving is done."},
    {"1",
     "A setting is wrong, a port is taken, a journal is damaged or has failed. One line on "
     "standard "
     "error says which."},
});

constexpr auto kSignals = std::to_array<Note>({
    {"SIGTERM, SIGINT",
     "Grant no more, and close connections that hold nothing; those that hold may renew and "
     "release. Stop when they are gone, or after --shutdown-timeout, or at a second signal."},
    {"SIGHUP",
     "Read certificates, --auth-token-file and --access again. Connections keep the certificates "
     "and "
     "the --auth-token-file that they began with; what --access takes away is gone at once."},
});

constexpr auto kDflockdFiles = std::to_array<Note>({
    {"/etc/lockd/dflockd.toml", "The settings of the service, dflockd.service."},
    {"/var/lib/lockd", "Its journal: what is held, across restarts."},
});
constexpr auto kDflockdHaFiles = std::to_array<Note>({
    {"/etc/lockd/dflockd-ha.toml", "The settings of the service, dflockd-ha.service."},
});

constexpr auto kDflockdSections =
    std::to_array<Section>({{"Signals", kSignals}, {"Files", kDflockdFiles}});
constexpr auto kDflockdHaSections =
    std::to_array<Section>({{"Signals", kSignals}, {"Files", kDflockdHaFiles}});
constexpr auto kLockdServerSections = std::to_array<Section>({{"Signals", kSignals}});

constexpr auto kDflockdExamples = std::to_array<Example>({
    {"dflockd --http-addr :8080", "For clients on this machine, over the line protocol and HTTP."},
    {"dflockd --auth-token-file token --wal locks",
     "For all who know the auth token, with locks that outlive the server."},
});
constexpr auto kDflockdHaExamples = std::to_array<Example>({
    {"dflockd-ha --etcd 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 \\\n"
     "  --host 0.0.0.0 --auth-token-file token --advertise-addr 10.0.0.11:6388",
     "One of several that share an etcd of three members."},
    {"dflockd-ha --etcd 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 --export backup",
     "A backup of what they hold."},
});
constexpr auto kLockdServerExamples = std::to_array<Example>({
    {"lockd-server -addr :8080 -wal locks -metrics", "Durable, with metrics."},
});

constexpr config::Command kDflockdProgram{
    .name = "dflockd",
    .summary =
        "distributed lock server: FIFO locks and semaphores, over the line protocol and HTTP",
    .description = kDescription,
    .options = kDflockd,
    .exits = kExits,
    .sections = kDflockdSections,
    .examples = kDflockdExamples,
    .see_also = "lockd-server lockctl"};
constexpr config::Command kLockdServerProgram{.name = "lockd-server",
                                              .summary = "distributed lock server, over HTTP",
                                              .description = kDescription,
                                              .options = kLockdServer,
                                              .exits = kExits,
                                              .sections = kLockdServerSections,
                                              .examples = kLockdServerExamples,
                                              .see_also = "dflockd lockctl"};
constexpr config::Command kDflockdHaProgram{
    .name = "dflockd-ha",
    .summary = "distributed lock server, several of which share an etcd",
    .description = kDescription,
    .options = kDflockdHa,
    .exits = kExits,
    .sections = kDflockdHaSections,
    .examples = kDflockdHaExamples,
    .see_also = "dflockd lockctl"};

}  // namespace

const config::Command& program(Flavour flavour) {
  switch (flavour) {
    case Flavour::lockd_server: return kLockdServerProgram;
    case Flavour::dflockd_ha: return kDflockdHaProgram;
    case Flavour::dflockd: break;
  }
  return kDflockdProgram;
}

std::span<const Option> settings(Flavour flavour) {
  const auto all = program(flavour).options;
  const auto end = std::ranges::find_if_not(all, &Option::is_setting);
  return all.first(static_cast<std::size_t>(end - all.begin()));
}

}  // namespace lockd
