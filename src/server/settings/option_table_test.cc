// The table has what the configuration page says, and its rules hold.
#include "server/settings/option_table.h"

#include <gtest/gtest.h>

#include <cctype>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/settings/load_options.h"

namespace lockd {
namespace {

using namespace std::string_literals;
using config::find_option;
using config::in_quotes;
using config::Option;

// The table of the configuration page.
const struct {
  std::string name;
  std::vector<std::string> variables;  // of dflockd
  std::string by_default;
  std::string of_dflockd;       // its default; empty: the same
  std::string of_lockd_server;  // likewise
} kSpecified[] = {
    {"host", {"DFLOCKD_HOST"}, "every address"},
    {"port", {"DFLOCKD_PORT"}, "6388", "", "no line port"},
    {"default-lease-ttl", {"DFLOCKD_DEFAULT_LEASE_TTL_S"}, "33"},
    {"lease-sweep-interval", {"DFLOCKD_LEASE_SWEEP_INTERVAL_S"}, "1"},
    {"gc-interval", {"DFLOCKD_GC_INTERVAL_S", "DFLOCKD_GC_LOOP_SLEEP"}, "5"},
    {"gc-max-idle", {"DFLOCKD_GC_MAX_IDLE_S", "DFLOCKD_GC_MAX_UNUSED_TIME"}, "60"},
    {"max-locks", {"DFLOCKD_MAX_LOCKS"}, "1000000", "1024", ""},
    {"max-waiters", {"DFLOCKD_MAX_WAITERS"}, "0"},
    {"max-holds", {}, "10000000"},
    {"max-holds-per-client", {}, "0"},
    {"max-lease-ttl", {}, "0"},
    {"max-set-wait", {}, "600"},
    {"fence-floor", {}, "0"},
    {"max-connections",
     {"DFLOCKD_MAX_CONNECTIONS"},
     "what the limit on open files allows, less a reserve"},
    {"max-connections-per-ip", {"DFLOCKD_MAX_CONNECTIONS_PER_IP"}, "0"},
    {"max-subscriptions", {"DFLOCKD_MAX_SUBSCRIPTIONS"}, "10000"},
    {"max-watchers", {}, "1000"},
    {"max-buffer-memory", {}, "a quarter of the memory, at most 1GiB"},
    {"read-timeout", {"DFLOCKD_READ_TIMEOUT_S"}, "23"},
    {"write-timeout", {"DFLOCKD_WRITE_TIMEOUT_S"}, "5"},
    {"shutdown-timeout", {"DFLOCKD_SHUTDOWN_TIMEOUT_S"}, "30"},
    {"auto-release-on-disconnect", {"DFLOCKD_AUTO_RELEASE_ON_DISCONNECT"}, "true"},
    {"detailed-errors", {"DFLOCKD_DETAILED_ERRORS"}, "false"},
    {"close-on-violation", {}, "true"},
    {"tls-cert", {"DFLOCKD_TLS_CERT"}, "none"},
    {"tls-key", {"DFLOCKD_TLS_KEY"}, "none"},
    {"tls-client-ca", {"DFLOCKD_TLS_CLIENT_CA"}, "none"},
    {"auth-token", {"DFLOCKD_AUTH_TOKEN"}, "none"},
    {"auth-token-file", {"DFLOCKD_AUTH_TOKEN_FILE"}, "none"},
    {"access", {}, "none"},
    {"auth-timeout", {}, "10"},
    {"max-unauthenticated", {}, "1000"},
    {"threads", {}, "the number of cores"},
    {"http-addr", {}, "127.0.0.1:8080", "off", ":8080"},
    {"metrics", {}, "true when HTTP is on", "", "false"},
    {"http-allow-origin", {}, "none"},  // "unless it is allowed"
    {"http-allow-host", {}, "none"},
    {"wal", {}, "lockd-data", "off", "off"},
    {"memory", {}, "false"},
    {"wal-sync", {}, "always"},
    {"history", {}, "16MiB"},
    {"slow-wait", {}, "0"},
    {"slow-hold", {}, "0"},
    {"log-level", {}, "info"},
    {"log-format", {}, "text"},
    {"debug", {"DFLOCKD_DEBUG"}, "false"},
    {"config", {}, "none"},
};

std::string variable_of(std::string name) {
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return "LOCKD_SERVER_" + name;
}

TEST(OptionTable, HasEverySettingOfThePageAndNoOther) {
  for (const Profile profile : {Profile::lockd, Profile::dflockd, Profile::lockd_server}) {
    EXPECT_EQ(settings(profile).size(), std::size(kSpecified));
    for (const auto& specified : kSpecified) {
      const Option* option = find_option(settings(profile), specified.name);
      ASSERT_NE(option, nullptr) << specified.name;
      std::vector<std::string> variables{variable_of(specified.name)};
      variables.insert(variables.end(), specified.variables.begin(), specified.variables.end());
      std::vector<std::string> found;
      for (const char* name : option->variables) {
        if (name != nullptr) found.emplace_back(name);
      }
      EXPECT_EQ(found, variables) << specified.name;
      const std::string& own = profile == Profile::dflockd        ? specified.of_dflockd
                               : profile == Profile::lockd_server ? specified.of_lockd_server
                                                                  : specified.by_default;
      EXPECT_EQ(default_text(*option), own.empty() ? specified.by_default : own) << specified.name;
    }
  }
}

TEST(OptionTable, LockdHaHasThoseOfACluster) {
  const struct {
    std::string name;
    std::string by_default;
  } cluster[] = {
      {"etcd", "off"},
      {"etcd-cluster", "lockd"},
      {"node-id", "--advertise-addr"},
      {"advertise-addr", "none"},
      {"etcd-detect", "2"},
      {"etcd-priority", "10"},
      {"etcd-ca", "none"},
      {"etcd-cert", "none"},
      {"etcd-key", "none"},
      {"etcd-user", "none"},
      {"etcd-password-file", "none"},
      {"cluster-secret-file", "none"},
      {"forward", "true"},
      {"forward-timeout", "2"},
  };
  EXPECT_EQ(settings(Profile::lockd_ha).size(), std::size(kSpecified) + std::size(cluster));
  for (const auto& specified : cluster) {
    const Option* option = find_option(settings(Profile::lockd_ha), specified.name);
    ASSERT_NE(option, nullptr) << specified.name;
    EXPECT_EQ(option->variables[0], variable_of(specified.name));
    EXPECT_EQ(default_text(*option), specified.by_default);
    EXPECT_EQ(find_option(settings(Profile::lockd), specified.name), nullptr) << specified.name;
  }
}

TEST(OptionTable, RowsAreWhole) {
  std::set<std::string_view> ended;
  std::string_view group;
  for (const Option& option : settings(Profile::lockd_ha)) {
    EXPECT_NE(option.value.empty(), option.takes_value()) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_TRUE(option.is_setting()) << option.name;
    EXPECT_TRUE(option.group == group || ended.insert(option.group).second) << option.group;
    group = option.group;
    EXPECT_EQ(option.secret, option.name == "auth-token") << option.name;
    EXPECT_NE(default_text(option), "") << option.name;
  }
}

// Options has them too, for those who make their own, but neither HTTP nor a journal.
TEST(OptionTable, HasTheDefaultsOfOptions) {
  const Options plain;
  const Options loaded = default_options(Profile::lockd_ha);
  EXPECT_EQ(loaded.port, plain.port);
  EXPECT_EQ(loaded.default_lease_ttl, plain.default_lease_ttl);
  EXPECT_EQ(loaded.lease_sweep_interval, plain.lease_sweep_interval);
  EXPECT_EQ(loaded.gc_interval, plain.gc_interval);
  EXPECT_EQ(loaded.gc_max_idle, plain.gc_max_idle);
  EXPECT_EQ(loaded.max_locks, plain.max_locks);
  EXPECT_EQ(loaded.max_waiters, plain.max_waiters);
  EXPECT_EQ(loaded.max_holds, plain.max_holds);
  EXPECT_EQ(loaded.max_holds_per_client, plain.max_holds_per_client);
  EXPECT_EQ(loaded.max_lease_ttl, plain.max_lease_ttl);
  EXPECT_EQ(loaded.max_set_wait, plain.max_set_wait);
  EXPECT_EQ(loaded.fence_floor, plain.fence_floor);
  EXPECT_EQ(loaded.auto_release_on_disconnect, plain.auto_release_on_disconnect);
  EXPECT_EQ(loaded.max_connections, plain.max_connections);
  EXPECT_EQ(loaded.max_connections_per_ip, plain.max_connections_per_ip);
  EXPECT_EQ(loaded.max_subscriptions, plain.max_subscriptions);
  EXPECT_EQ(loaded.max_watchers, plain.max_watchers);
  EXPECT_EQ(loaded.read_timeout, plain.read_timeout);
  EXPECT_EQ(loaded.auth_timeout, plain.auth_timeout);
  EXPECT_EQ(loaded.max_unauthenticated, plain.max_unauthenticated);
  EXPECT_EQ(loaded.write_timeout, plain.write_timeout);
  EXPECT_EQ(loaded.shutdown_timeout, plain.shutdown_timeout);
  EXPECT_EQ(loaded.detailed_errors, plain.detailed_errors);
  EXPECT_EQ(loaded.close_on_violation, plain.close_on_violation);
  EXPECT_EQ(loaded.wal_sync, plain.wal_sync);
  EXPECT_EQ(loaded.etcd, plain.etcd);
  EXPECT_EQ(loaded.etcd_cluster, plain.etcd_cluster);
  EXPECT_EQ(loaded.etcd_detect, plain.etcd_detect);
  EXPECT_EQ(loaded.history, plain.history);
  EXPECT_EQ(loaded.slow_wait, plain.slow_wait);
  EXPECT_EQ(loaded.slow_hold, plain.slow_hold);
  EXPECT_EQ(loaded.log_level, plain.log_level);
  EXPECT_EQ(loaded.log_format, plain.log_format);
}

TEST(OptionTable, LockdServerCallsHttpAddrAddr) {
  EXPECT_EQ(find_option(settings(Profile::lockd), "addr"), nullptr);
  const Option* addr = find_option(settings(Profile::lockd_server), "addr");
  ASSERT_NE(addr, nullptr);
  EXPECT_EQ(addr->name, "addr");
  EXPECT_EQ(addr, find_option(settings(Profile::lockd_server), "http-addr"));
  EXPECT_EQ(find_option(settings(Profile::lockd), ""), nullptr);
}

// Both sides of every boundary. What is taken is printed as given, unless it says otherwise.
const std::vector<std::string> kCounts = {"0", "1", "4294967295"};
const std::vector<std::string> kNotCounts = {"-1", "4294967296", "", "x", "1 ", "+1", "1.5", "0x1"};
const std::vector<std::string> kSeconds = {"1", "0.5", "0.000000001", "9223372036"};
const std::vector<std::string> kNotSeconds = {
    "-1", "9223372036.1", "9223372037",          "0.0000000001", "1.", "1e", "1e10", "5s",
    "",   "1.5.1",        "18446744073709551617"};
const std::vector<std::string> kPaths = {"/a b", "x"};
const std::vector<std::string> kNotPaths = {"", "a\0b"s};

std::vector<std::string> operator+(std::vector<std::string> all,
                                   const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

struct Rule {
  std::vector<std::string> names;
  std::vector<std::string> taken;
  std::vector<std::string> refused;
};

const Rule kRules[] = {
    {{"port"}, {"0", "1", "65535"}, {"65536", "-1", "", "http", "tcp://10.0.0.1:6388"}},
    {{"max-waiters", "max-connections", "max-connections-per-ip", "max-subscriptions",
      "max-watchers", "max-unauthenticated"},
     kCounts,
     kNotCounts},
    {{"max-holds", "max-holds-per-client"}, kCounts, kNotCounts},
    {{"max-lease-ttl"}, {"0", "1", "9223372036"}, {"-1", "0.5", "9223372037", "1h", ""}},
    {{"fence-floor"}, {"0", "1", "9007199254740991"}, {"-1", "9007199254740992", "much", ""}},
    {{"max-locks"}, {"1", "2147483647"}, {"0", "-1", "2147483648", "1,000", ""}},
    {{"max-buffer-memory", "history"},
     {"0", "4097", "16MiB", "1GiB"},
     {"", "-1", "16MB", "1 GiB", "much"}},
    {{"threads"}, {"1", "256"}, {"0", "257", "-1", ""}},
    {{"default-lease-ttl", "lease-sweep-interval", "gc-interval", "max-set-wait", "read-timeout",
      "auth-timeout"},
     kSeconds,
     kNotSeconds + std::vector<std::string>{"0", "0.0", "0.000000000"}},
    {{"gc-max-idle", "write-timeout", "shutdown-timeout", "slow-wait", "slow-hold"},
     kSeconds + std::vector<std::string>{"0"},
     kNotSeconds},
    {{"auto-release-on-disconnect", "close-on-violation", "detailed-errors", "metrics", "debug",
      "memory"},
     {"true", "false"},
     {"", "2", "t", "truee", "yes ", "enabled"}},
    {{"tls-cert", "tls-key", "tls-client-ca", "auth-token-file", "access", "wal", "config"},
     kPaths,
     kNotPaths},
    {{"auth-token"},
     {"x", "a b", std::string(65536, 'x')},
     {"", " \t", "a\nb", "a\n", "\ra", "a\0b"s, std::string(65537, 'x')}},
    {{"host"},
     {"0.0.0.0", "127.0.0.1", "::1", "::", "fe80::1%eth0", "localhost", "a-b.example.com",
      "::ffff:127.0.0.1"},
     {"", "127.0.0.256", "1.2.3", "127.0.0.1:6388", "[::1", "::1]", "[127.0.0.1]", ":::", "[]",
      "a b", "*", "-a", ".a", "a..b", "fe80::1%", std::string(254, 'a')}},
    {{"http-addr"},
     {"off", ":8080", ":0", ":65535", "0.0.0.0:80", "[::1]:8080", "[::]:80", "localhost:80"},
     {"", "8080", ":", ":65536", ":-1", "::1:8080", "[::1]", "[::1]8080", "localhost:", "a b:1",
      "[127.0.0.1]:80", "[]:80", "http://a:80", "1.2.3.4.5:80"}},
    {{"http-allow-origin"},
     {"*", "https://a.example", "http://a:80,https://[::1]:1"},
     {"", "a", "a.example", "://a", "https://", "https://a/", "https://a,", ",https://a",
      "https://a, https://b", "https://a b", "https://u@a", "https://a\nb"}},
    {{"http-allow-host"},
     {"*", "a.example", "localhost,a-b.example"},
     {"", "a.example:80", "a,", ",a", "a, b", "a b", "http://a", "a/b", "-a"}},
    {{"wal-sync"},
     {"always", "10ms", "1s", "1.5ms", "0.000001ms"},
     {"", "0ms", "0s", "10", "ms", "s", "-1s", "10 ms", "10us", "Always", "never", "9223372037s"}},
    {{"log-level"}, {"trace", "debug", "info", "warn", "error"}, {"", "INFO", "warning", "off"}},
    {{"log-format"}, {"text", "json"}, {"", "JSON", "xml"}},
};

const std::vector<std::string> kIdentifiers = {"a", "Node-1_b.c", std::string(64, 'x')};
const std::vector<std::string> kNotIdentifiers = {"", "a b", "a/b", "a:1", std::string(65, 'x')};
const Rule kClusterRules[] = {
    {{"etcd"},
     {"a:1", "10.0.0.1:2379,[::1]:2379,c.example:65535"},
     {"", "a", ":2379", "a:0", "a:1,", ",a:1", "a:1, b:1", "http://a:1", "a:65536"}},
    {{"etcd-cluster", "node-id", "etcd-user"}, kIdentifiers, kNotIdentifiers},
    {{"advertise-addr"}, {"a:1", "[::1]:6388"}, {"", "a", "a:65536", "::1:80"}},
    {{"forward"}, {"true", "false"}, {"", "2", "yes "}},
    {{"forward-timeout"}, {"0", "0.5", "60"}, {"", "60.1", "2s", "-1"}},
    {{"etcd-detect"}, {"0.3", "2", "60"}, {"", "0", "0.299", "60.1", "2s", "-1"}},
    {{"etcd-priority"}, {"0", "10"}, {"", "-1", "11", "high"}},
    {{"etcd-ca", "etcd-cert", "etcd-key", "etcd-password-file", "cluster-secret-file"},
     kPaths,
     kNotPaths},
};

TEST(OptionRules, HoldOnBothSidesOfEveryBoundary) {
  std::set<std::string> covered;
  std::vector<Rule> rules(std::begin(kRules), std::end(kRules));
  rules.insert(rules.end(), std::begin(kClusterRules), std::end(kClusterRules));
  for (const Rule& rule : rules) {
    for (const std::string& name : rule.names) {
      covered.insert(name);
      const Option& option = *find_option(settings(Profile::lockd_ha), name);
      for (const std::string& text : rule.taken) {
        EXPECT_EQ(kept_text(option, text), text) << name << " takes " << in_quotes(text);
      }
      for (const std::string& text : rule.refused) {
        EXPECT_EQ(kept_text(option, text), std::nullopt) << name << " refuses " << in_quotes(text);
      }
    }
  }
  EXPECT_EQ(covered.size(), settings(Profile::lockd_ha).size()) << "a setting has no rule here";
}

TEST(Options, ProtectedModeIsWhereNobodyChose) {
  const struct {
    const char* what;
    Options options;
    bool line;
    bool http;
  } cases[] = {
      {"nothing chosen", {}, true, false},
      {"a host", {.host = "0.0.0.0"}, false, false},
      {"a token", {.secret = "s"}, false, false},
      {"a client CA", {.tls_client_ca = "ca.pem"}, false, false},
      {"a file of tokens", {.access = "access.toml"}, false, false},
      {"no line port", {.port = std::nullopt}, false, false},
      {"HTTP on every address", {.http_addr = Endpoint{"", 80}}, true, true},
      {"HTTP, and a host for the line port",
       {.host = "::", .http_addr = Endpoint{"", 80}},
       false,
       true},
      {"HTTP with a host", {.http_addr = Endpoint{"0.0.0.0", 80}}, true, false},
      {"HTTP and a token", {.http_addr = Endpoint{"", 80}, .secret = "s"}, false, false},
      {"HTTP and a client CA",
       {.http_addr = Endpoint{"", 80}, .tls_client_ca = "ca.pem"},
       false,
       false},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(c.options.line_is_protected(), c.line) << c.what;
    EXPECT_EQ(c.options.http_is_protected(), c.http) << c.what;
  }
}

}  // namespace
}  // namespace lockd
