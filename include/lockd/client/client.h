// Locks and semaphores on one server, on several, or on a cluster: the way in for programs.
//
//   Client client({.servers = {{.host = "locks.example.com"}}});
//   auto lock = client.acquire({.key = "my-job", .wait = 10s, .lease = 30s});
//   if (!lock) return complain(lock.outcome, lock.detail);
//   do_the_job(lock->lost(), lock->fence());
//   lock->release();                       // or leave it to the destructor
//
// How an acquire proceeds:
//   1. The key picks the server: see shard_of(). Of a cluster it is the one that leads, which is
//      looked for. A connection is opened, for this lock alone, so that a crash of ours releases at
//      once.
//   2. The request waits in the queue on it. A stop token that fires closes it: there is no other
//      way to leave a queue. When the server goes away meanwhile, it is asked again until the wait
//      is over, with the same secret, made for this acquisition: a server that still has the grant
//      or the place answers with that.
//   3. A grant that comes after a third of its lease, counted from the request, is renewed before
//      it is handed out: nobody gets one that ran out while this process was stopped. Nor one that
//      the server says it has taken back: `lost`.
//   4. The client's one background thread takes over, renews and watches, until it is released.
//
// Any thread may call anything at any time, except the destructor. What was acquired may outlive
// the client. After fork() the child must not use it: its thread is not there.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>
#include <vector>

#include "lockd/client/address.h"
#include "lockd/client/connection.h"
#include "lockd/client/held_lock.h"
#include "lockd/client/outcome.h"
#include "lockd/requests.h"
#include "lockd/types.h"

namespace lockd::client {

// The position of the server that has the key, in a list of that many: CRC-32 (that of zlib) of the
// key, modulo their number, as all clients do. Precondition: `servers` is not 0.
std::size_t shard_of(std::string_view key, std::size_t servers) noexcept;

// Of how many servers a cluster may be.
inline constexpr std::size_t kClusterSizeMax = 16;

struct ClientOptions {
  // Several share the keys among them. All clients must have the same list, in the same order.
  std::vector<Address> servers{Address{}};
  // Or, and then `servers` is not looked at: the servers of one cluster, of which one leads, in any
  // order. The leader is found, again when another takes over, and what is held is kept through
  // that. Only these are ever asked, whomever they name. Certificates must name each as it is here.
  std::vector<Address> cluster{};
  ConnectOptions connect{};
  // How long a release, also that of a destructor, waits for a server that does not answer.
  Duration release_timeout = std::chrono::seconds(5);
};

struct LockRequest {
  std::string_view key;
  // In the queue, once connected; zero is a try. A wait goes on while the server is down, restarts
  // or stops: the place in the queue is lost then (HeldLock::queued_again), and asked for again.
  Duration wait{};
  Lease lease{};
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;  // how many permits a semaphore has; 1 for a lock
  // Of a lock: alone, or with others who share it. Of a semaphore: how many permits to take, all at
  // once; several need a lease named. A server that is too old for them: `unsupported`.
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  // Called at most once, with HeldLock::loss(), on the background thread: it must not block, as
  // all renewals of the client wait for it, nor throw. It may release or destroy the HeldLock.
  std::function<void(const Status&)> on_lost{};
  // The same, called each time that the lock becomes suspect.
  std::function<void(const Status&)> on_suspect{};
  // Called by acquire() itself, before it asks again: why the wait was interrupted.
  std::function<void(const Status&)> on_interrupted{};
};

// Several keys in one step: all of them or none. No part of them is ever held; they have one fence,
// larger than any that was granted for one of them before, and are renewed, lost and released
// together. A name holds them that nobody else has, and not a connection: when this process dies
// they end with their lease. A server that is too old for them: `unsupported`.
struct SetRequest {
  // 1 to kKeysPerSetMax, no kind and key twice; `invalid` unless all of them are on one server.
  std::vector<SetItem> keys;
  // As of a LockRequest. A server may cut it short: then it is asked again for what is left.
  Duration wait{};
  Lease lease{};
  std::function<void(const Status&)> on_lost{};
  std::function<void(const Status&)> on_interrupted{};
};

// Acquisition in two phases: a place in the queue, which is given up when it is destroyed. Moves
// like any value, and is used by one thread at a time.
class Place {
 public:
  Place() noexcept;  // none
  ~Place();
  Place(Place&&) noexcept;
  Place& operator=(Place&&) noexcept;

  // Whether it was granted at once. The lease is running, and nobody renews it before wait().
  bool is_granted() const noexcept;
  // Waits for its turn. Whatever the outcome, the place is used up. A place that is lost meanwhile,
  // with the server or the connection, is asked for again until the wait is over, as acquire()
  // does. `lease_expired`: the turn came and its lease ran out before this was called. `lost`: the
  // server has taken it back.
  Result<HeldLock> wait(Duration wait, std::stop_token stop = {});

 private:
  friend class Client;
  class Impl;

  explicit Place(std::unique_ptr<Impl> impl) noexcept;

  std::unique_ptr<Impl> impl_;
};

class Client {
 public:
  // Connects to nobody yet; options that cannot be used are `invalid` then. Throws
  // std::invalid_argument when there are no servers, and std::system_error when the system gives no
  // thread.
  explicit Client(ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Result<HeldLock> acquire(const LockRequest& request, std::stop_token stop = {});
  // When it ends without an answer to what it asked, it makes sure that nothing is left held, which
  // takes ClientOptions::release_timeout at most, also when the stop token has fired.
  Result<HeldLock> acquire_all(const SetRequest& request, std::stop_token stop = {});
  // Joins the queue, and returns at once. LockRequest::wait is not used.
  Result<Place> enqueue(const LockRequest& request, std::stop_token stop = {});

  // The server that has the key, of a cluster the one that was last known to lead; and a new
  // connection to it, of a cluster to the one that leads now.
  const Address& server_of(std::string_view key) const noexcept;
  Result<Connection> connect(std::string_view key, std::stop_token stop = {});

 private:
  class Impl;

  std::unique_ptr<Impl> impl_;  // constant
};

}  // namespace lockd::client
