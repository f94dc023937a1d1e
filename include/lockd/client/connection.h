// Connection: one connection to a server, with one call for each command of the line protocol.
//
//   auto opened = Connection::open({.host = "locks.example.com"}, {.auth_token = auth_token});
//   if (!opened) return print_error(opened.outcome, opened.detail);
//   Connection& server = *opened;
//   auto grant = server.acquire({.key = "my-job", .wait = 10s, .lease = 30s});
//   if (grant) server.release({.key = "my-job", .token = grant->token});
//
// For tools, signals and statistics. To hold a lock while working, use a Client
// (lockd/client/client.h), which renews the lease and reports its loss.
//
// Every call blocks for at most the requested wait plus Options::reply_timeout; a stop token ends
// it at once. A call without an answer closes the connection, because its late reply could be
// mistaken for the next one's; later calls return `disconnected`. The server then ends the
// connection's places, subscriptions and, unless configured otherwise, locks.
//
// Used by one thread at a time. Works with every server that is compatible with dflockd.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "lockd/client/address.h"
#include "lockd/client/boot_clock.h"
#include "lockd/client/outcome.h"
#include "lockd/types.h"

namespace lockd::client {

struct TlsOptions {
  std::string ca_file{};      // trusted CAs, PEM; empty: the system's store
  std::string certificate{};  // client certificate with its chain, PEM
  std::string key{};          // the client certificate's private key, PEM
  std::string server_name{};  // expected in the server's certificate; empty: the host
  // False accepts any certificate, which protects against passive eavesdropping only.
  bool verify = true;
};

struct ConnectOptions {
  std::optional<TlsOptions> tls{};  // unset: plain text
  std::string auth_token{};         // empty: none is sent
  // A regular file whose first line is the auth token, instead of `auth_token`. Read for every
  // connection, so that the token can be rotated.
  std::string auth_token_file{};
  // How the client identifies itself to operators: 1 to 256 bytes of plain text. Defaults:
  // "user@host:pid" and the program's base name. With an empty name the client does not identify
  // itself, and the server does not notify it when it revokes a lock. Old servers ignore the name.
  std::optional<std::string> name{};
  std::optional<std::string> note{};
  // For name resolution, TCP, TLS, authentication and identification together.
  Duration connect_timeout = std::chrono::seconds(10);
  // The longest time for a reply, beyond the requested wait.
  Duration reply_timeout = std::chrono::seconds(10);
};

// Unset: the server's default lease.
using Lease = std::optional<std::chrono::seconds>;

struct LineAcquire {
  std::string_view key;
  std::chrono::seconds wait{};  // the longest time in the queue; zero does not wait
  Lease lease{};
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;  // the permits of a semaphore; 1 for a lock
  // Old servers reject shared mode and several permits (`refused`) and close the connection.
  Mode mode = Mode::exclusive;  // locks only
  std::uint32_t permits = 1;    // semaphores only; more than one requires `lease`
  // Makes retries safe: a repeated request with the same secret returns the existing grant, or
  // keeps the place in the queue.
  std::optional<std::uint64_t> secret{};
};

struct LineEnqueue {
  std::string_view key;
  Lease lease{};
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  std::optional<std::uint64_t> secret{};
};

struct LineAwait {
  std::string_view key;
  std::chrono::seconds wait{};
  Kind kind = Kind::lock;
};

// Identifies a grant. A client that knows the lock token may renew and release it on any
// connection.
struct LineHold {
  std::string_view key;
  std::string_view token;
  Kind kind = Kind::lock;
};

struct LineGrant {
  std::string token{};
  // The first 16 hex digits of the lock token. Servers of this project increase it per key; other
  // servers have random tokens, which make it a random number, or 0 if they are not hex.
  Fence fence = 0;
  std::chrono::seconds lease{};
  // The time of the request. The lease starts between the request and the reply, so it lasts at
  // least until certain_until(). After a long wait in the queue that may have passed although the
  // lease lasts; a renewal then makes it certain.
  BootClock::time_point sent_at{};

  BootClock::time_point certain_until() const noexcept;
};

struct LineRenewal {
  std::chrono::seconds remaining{};
  BootClock::time_point sent_at{};

  BootClock::time_point certain_until() const noexcept;
};

struct Signal {
  std::string channel{};
  std::string payload{};
};

// A call of the HTTP API through the line protocol's command `api`.
struct ApiCall {
  std::string_view method;  // "GET"
  std::string_view path;    // "/v1/locks"
  // The body, or the query parameters of a GET: one object in one line, or empty.
  std::string_view json{};
  Duration wait{};  // the wait that the call requests from the server
};

struct ApiAnswer {
  unsigned status = 0;  // HTTP status
  std::string json{};
};

class Connection {
 public:
  using Options = ConnectOptions;

  // Connects, verifies the server, authenticates and identifies the client.
  static Result<Connection> open(const Address& address, const Options& options = {},
                                 std::stop_token stop = {});

  Connection() noexcept;  // closed
  ~Connection();
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  bool is_open() const noexcept;
  void close() noexcept;

  Result<LineGrant> acquire(const LineAcquire& request, std::stop_token stop = {});
  Status release(const LineHold& hold, std::stop_token stop = {});
  // Without `lease`, uses the grant's own lease.
  Result<LineRenewal> renew(const LineHold& hold, Lease lease = {}, std::stop_token stop = {});

  // Two-phase acquisition. `ok`: granted at once, without await_turn(). `queued`: a place in the
  // queue, which lasts until await_turn() or the end of the connection.
  Result<LineGrant> enqueue(const LineEnqueue& request, std::stop_token stop = {});
  Result<LineGrant> await_turn(const LineAwait& request, std::stop_token stop = {});

  // Each signal is delivered to one member of a group. Empty: no group.
  Status listen(std::string_view pattern, std::string_view group = {}, std::stop_token stop = {});
  Status unlisten(std::string_view pattern, std::string_view group = {}, std::stop_token stop = {});
  // Returns the number of connections that receive the signal.
  Result<std::uint64_t> publish(std::string_view channel, std::string_view payload,
                                std::stop_token stop = {});
  // Returns signals in order of arrival; `timeout` if none arrives within `wait`. Signals that
  // arrive during other calls are queued, the latest kSignalsMax or kSignalBytesMax of them. While
  // idle it pings the server every kPingInterval and returns `no_reply` if the server is dead. A
  // timeout or cancellation leaves the connection open unless a ping is pending.
  Result<Signal> next_signal(Duration wait, std::stop_token stop = {});
  // The number of signals dropped from a full queue.
  std::uint64_t signals_dropped() const noexcept;

  // `ok`: any HTTP status. `refused`: the server lacks the command and closes the connection.
  Result<ApiAnswer> api(const ApiCall& call, std::stop_token stop = {});
  // The next event of the stream that an api() call started: JSON whose member `event` names the
  // type. Times out and pings like next_signal(). No event is lost if no other call is made.
  Result<std::string> next_event(Duration wait, std::stop_token stop = {});

  // The server's statistics: JSON of at most kStatsSizeMax bytes.
  Result<std::string> stats(std::stop_token stop = {});
  Status ping(std::stop_token stop = {});
  // `ok`: this server leads its cluster, confirmed by a quorum, or is a single server. Old servers
  // lack the command: `refused`, and the connection is closed.
  Status barrier(std::stop_token stop = {});

  static constexpr std::size_t kSignalsMax = 1024;
  static constexpr std::size_t kSignalBytesMax = 16 * 1024 * 1024;
  static constexpr std::size_t kEventBytesMax = 16 * 1024 * 1024;
  static constexpr std::size_t kStatsSizeMax = 256 * 1024 * 1024;
  static constexpr std::chrono::seconds kPingInterval{15};

 private:
  friend class Client;
  class Impl;

  explicit Connection(std::unique_ptr<Impl> impl) noexcept;

  std::unique_ptr<Impl> impl_;  // null: default-constructed or moved from
};

}  // namespace lockd::client
