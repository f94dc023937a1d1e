// One connection to a server that speaks the line protocol: the calls as they are on the wire.
//
//   auto opened = Connection::open({.host = "locks.example.com"}, {.auth_token = auth_token});
//   if (!opened) return complain(opened.outcome, opened.detail);
//   Connection& server = *opened;
//   auto grant = server.acquire({.key = "my-job", .wait = 10s, .lease = 30s});
//   if (grant) server.release({.key = "my-job", .token = grant->token});
//
// This is for tools, signals and statistics. To hold a lock while doing something, take a Client
// (lockd/client/client.h): here nobody renews, and nobody tells that a lease has run out.
//
// Every call blocks until it is answered, for a bounded time: what it asked to wait, and then
// Options::reply_timeout. A stop token ends it at once. A call that ended without an answer closes
// the connection, since nobody could tell its late reply from that to the next request; the calls
// after it answer `disconnected`. The server then gives up what the connection had: its places in
// queues, its subscriptions, and, unless it was told otherwise, its locks.
//
// Used by one thread at a time. Works against every server that is compatible with dflockd.
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
  std::string ca_file{};      // PEM: whom to believe; empty is the system's store
  std::string certificate{};  // PEM, with its chain: for servers that ask who we are
  std::string key{};          // PEM, of the certificate
  std::string
      server_name{};  // whom the server's certificate must name; empty is the address's host
  // False believes anybody who answers: the connection is hidden from those who only listen, and
  // from nobody else.
  bool verify = true;
};

struct ConnectOptions {
  std::optional<TlsOptions> tls{};  // none is plain text
  std::string auth_token{};         // which the server asks for; empty: none is sent
  // Instead of it, the regular file whose first line it is: read for every connection, as tokens
  // are rotated.
  std::string auth_token_file{};
  // Who we say we are, for those who look at the server: 1 to 256 bytes of plain text. By default
  // "user@host:pid", and the program's base name. An empty name says nothing, and then the server
  // does not say either when it takes a lock away. A server that knows no names works all the same.
  std::optional<std::string> name{};
  std::optional<std::string> note{};
  // For the host's name, TCP, TLS, the auth token and who we are together.
  Duration connect_timeout = std::chrono::seconds(10);
  // How long a reply may take, beyond what the request asked to wait.
  Duration reply_timeout = std::chrono::seconds(10);
};

// No lease named is the server's default.
using Lease = std::optional<std::chrono::seconds>;

struct LineAcquire {
  std::string_view key;
  std::chrono::seconds wait{};  // in the queue; zero is a try
  Lease lease{};
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;  // how many permits a semaphore has; 1 for a lock
  // Older servers refuse what these add, and close: a plain `refused`.
  Mode mode = Mode::exclusive;  // of a lock: alone, or with others who share it
  std::uint32_t permits = 1;    // of a semaphore: how many to take; several need a lease named
  // A secret of this acquisition: asking again with it, for as long as the first is in force, is
  // given the same grant, or has the same place in the queue.
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

// Names a grant. Whoever knows the token may renew it and release it, on any connection.
struct LineHold {
  std::string_view key;
  std::string_view token;
  Kind kind = Kind::lock;
};

struct LineGrant {
  std::string token{};
  // The number of the grant: the token's first 16 hex digits. A server of this project counts
  // upward with it, per key. With another, whose tokens are random, it is just a number, and 0 when
  // they are not hex.
  Fence fence = 0;
  std::chrono::seconds lease{};
  // When the request was sent. The lease began between this and the reply, so it runs at least
  // until certain_until(). After a long wait in the queue that may be over already, while the
  // lease itself is not: renew, and know.
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

// A call of the HTTP API, which the line port carries by its command `api`.
struct ApiCall {
  std::string_view method;  // "GET"
  std::string_view path;    // "/v1/locks"
  // One object in one line, or nothing: the body, or the parameters of a GET's query.
  std::string_view json{};
  Duration wait{};  // how long the call asks the server to wait
};

struct ApiAnswer {
  unsigned status = 0;  // that of HTTP
  std::string json{};
};

class Connection {
 public:
  using Options = ConnectOptions;

  // Connects, verifies the server, sends the auth token if there is one, and says who we are.
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
  // No lease named is the grant's own.
  Result<LineRenewal> renew(const LineHold& hold, Lease lease = {}, std::stop_token stop = {});

  // Two phases: join the queue now, wait later. `ok` is a grant at once, and needs no await_turn();
  // `queued` is a place in it, which lasts until await_turn() or the end of the connection.
  Result<LineGrant> enqueue(const LineEnqueue& request, std::stop_token stop = {});
  Result<LineGrant> await_turn(const LineAwait& request, std::stop_token stop = {});

  // A group shares its signals: each goes to one of its members. Empty: no group.
  Status listen(std::string_view pattern, std::string_view group = {}, std::stop_token stop = {});
  Status unlisten(std::string_view pattern, std::string_view group = {}, std::stop_token stop = {});
  // How many connections it reached.
  Result<std::uint64_t> publish(std::string_view channel, std::string_view payload,
                                std::stop_token stop = {});
  // The next signal, in the order in which they came; `timeout` when none comes within `wait`.
  // Signals that arrive during other calls are kept for this one, the latest kSignalsMax of them,
  // or kSignalBytesMax. While nothing comes it pings the server every kPingInterval, so that a dead
  // one is noticed: `no_reply`. To time out or to be cancelled leaves the connection open, unless a
  // ping is under way.
  Result<Signal> next_signal(Duration wait, std::stop_token stop = {});
  // How many were dropped, because they were not asked for soon enough.
  std::uint64_t signals_dropped() const noexcept;

  // `ok` is any answer, also one that says no. `refused`: the server lacks the command, and closes.
  Result<ApiAnswer> api(const ApiCall& call, std::stop_token stop = {});
  // The next event of the stream that an api() has begun, as JSON whose member `event` names its
  // kind; else as with next_signal(). Who calls nothing else meanwhile misses none.
  Result<std::string> next_event(Duration wait, std::stop_token stop = {});

  // The server's statistics: JSON, of any length up to kStatsSizeMax.
  Result<std::string> stats(std::stop_token stop = {});
  Status ping(std::stop_token stop = {});
  // `ok` when this server leads its cluster now, proved with the quorum; always `ok` on one
  // machine. Older servers know no such command, answer `refused` and close.
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

  std::unique_ptr<Impl> impl_;  // null: closed from the start, or moved from
};

}  // namespace lockd::client
