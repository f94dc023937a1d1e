// What the server was told to do: every setting as a typed value, and what follows from them.
//
// For main, which loads them once (see server/settings/load_options.h), and for whatever it then
// starts. A plain value, never changed after it is loaded: any thread may read it.
//
// The defaults below are those of lockd, but without HTTP and a journal: for those who make their
// own. default_options() has those of every profile. What a setting means to people, its flag,
// variables and rule, stand in server/settings/option_table.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "config/values.h"
#include "lockd/types.h"

namespace lockd {

// One server under several names: `dflockd` has dflockd's defaults and letter, `lockd_server` those
// of the reservation engine, and `lockd_ha` the settings of a cluster as well.
enum class Profile : std::uint8_t { lockd, dflockd, lockd_server, lockd_ha };

// Each has a mailbox for signals, and those are numbered by a byte.
inline constexpr std::uint32_t kThreadsMax = 256;

enum class LogLevel : std::uint8_t { trace, debug, info, warn, error };
enum class LogFormat : std::uint8_t { text, json };

using Endpoint = config::Address;

struct Options {
  // Listening. An empty host is every address.
  std::string host{};
  std::optional<std::uint16_t> port = 6388;      // 0: any free one; none: no line port at all
  std::optional<Endpoint> http_addr{};           // none: HTTP is off
  bool metrics = false;                          // as loaded: whether /metrics is served
  std::vector<std::string> http_allow_origin{};  // whose pages may call; "*": all
  std::vector<std::string> http_allow_host{};    // by what names it is reached; "*": any
  std::uint32_t threads = 0;                     // as loaded: never 0

  // Leases and keys.
  Duration default_lease_ttl = std::chrono::seconds(33);
  Duration lease_sweep_interval = std::chrono::seconds(1);
  Duration gc_interval = std::chrono::seconds(5);
  Duration gc_max_idle = std::chrono::seconds(60);
  std::uint64_t max_locks = 1'000'000;
  std::uint32_t max_waiters = 0;  // here and in those below: 0 is no limit
  std::uint32_t max_holds = 10'000'000;
  std::uint64_t fence_floor = 0;
  std::uint32_t max_holds_per_client = 0;
  Duration max_lease_ttl{};
  Duration max_set_wait = std::chrono::seconds(600);  // this has no "no limit"
  bool auto_release_on_disconnect = true;
  bool dflockd_letter = false;  // the profile: limits of idle keys stay, full queues refuse tries

  // Connections.
  std::uint32_t max_connections = 0;  // as loaded: what descriptors allow, unless 0 was given
  std::uint32_t max_connections_per_ip = 0;
  std::uint32_t max_subscriptions = 10'000;
  std::uint32_t max_watchers = 1'000;
  std::uint64_t max_buffer_memory = 0;  // bytes; 0: no limit
  Duration read_timeout = std::chrono::seconds(23);
  Duration write_timeout = std::chrono::seconds(5);      // 0: none
  Duration shutdown_timeout = std::chrono::seconds(30);  // 0: none
  bool detailed_errors = false;
  bool close_on_violation = true;

  // Who may come in. Paths are empty when not set.
  std::string tls_cert{};
  std::string tls_key{};
  std::string tls_client_ca{};
  HashedSecret auth_token{};
  std::string auth_token_file{};
  HashedSecret secret{};         // the token that all share, whichever of the two it came by
  HashedSecret second_secret{};  // as good as the first, while it takes its place; from the file
  std::string access{};          // the file of tokens and certificates, each with its rights
  Duration auth_timeout = std::chrono::seconds(10);
  std::uint32_t max_unauthenticated = 1000;  // 0: no limit

  // Durability.
  std::string wal{};    // a directory; empty: no journal
  Duration wal_sync{};  // the time between syncs; 0: always, nothing is told before it is durable

  // A cluster: lockd-ha alone has these.
  std::vector<std::string> etcd{};  // endpoints; empty: it is on its own
  std::string etcd_cluster = "lockd";
  std::string node_id{};                     // as loaded: never empty in a cluster
  std::optional<Endpoint> advertise_addr{};  // where clients reach it
  Duration etcd_detect = std::chrono::seconds(2);
  int etcd_priority = 10;  // 0 to 10: the others stand for election later
  std::string etcd_ca{};   // files
  std::string etcd_cert{};
  std::string etcd_key{};
  std::string etcd_user{};
  std::string etcd_password_file{};
  std::string cluster_secret_file{};
  HashedSecret cluster_secret{};  // that it holds; none: nothing is forwarded, here or from here
  bool forward = true;
  Duration forward_timeout = std::chrono::seconds(2);

  // Watching.
  std::uint64_t history = 16 << 20;  // bytes of what happened; 0: nothing is kept
  Duration slow_wait{};              // 0: none is slow
  Duration slow_hold{};

  // Logging.
  LogLevel log_level = LogLevel::info;  // as loaded: `debug` is already in it
  LogFormat log_format = LogFormat::text;
  bool debug = false;

  std::string config{};  // the file that was read, if one was

  // Whether a peer has to show that it may come in.
  bool demands_proof() const {
    return !secret.empty() || !tls_client_ca.empty() || !access.empty();
  }

  // Protected mode: nobody chose where to listen or who may come in, so only loopback peers are
  // served. The line port and HTTP are in it, or not, each by itself.
  bool line_is_protected() const { return port.has_value() && host.empty() && !demands_proof(); }
  bool http_is_protected() const {
    return http_addr.has_value() && http_addr->host.empty() && !demands_proof();
  }
};

}  // namespace lockd
