// Client: locks and semaphores on one server, on several, or on a cluster.
//
//   Client client({.servers = {{.host = "locks.example.com"}}});
//   auto lock = client.acquire({.keys = "my-job", .wait = 10s, .lease = 30s});
//   if (!lock) return print_error(lock.outcome, lock.detail);
//   do_the_job(lock->lost(), lock->fence());
//   lock->release();                       // optional: the destructor releases, too
//
// How acquire() proceeds:
//   1. The key selects the server: see shard_of(). In a cluster the client searches the leader. It
//      opens one connection per lock, so that a crash of this process releases the lock at once.
//   2. The request waits in the server's queue. A stop token that fires closes the connection,
//      because the protocol has no other way to leave a queue. If the server fails, the client
//      resends the request until the wait is over, with the same secret, so that a server that
//      still has the grant or the place returns it.
//   3. A grant that arrives later than a third of its lease after the request is renewed first, so
//      that no caller gets an expired lock because this process was paused. A grant that the server
//      has revoked meanwhile is returned as `lost`.
//   4. The client's background thread renews and monitors the lock until it is released.
//
// Thread-safe, except the destructor. Locks may outlive the client. A child after fork() must not
// use the client, because it lacks the background thread.
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

// The index of the key's server: CRC-32 (zlib's) of the key modulo `servers`, in all clients.
// Precondition: `servers` is not 0.
std::size_t shard_of(std::string_view key, std::size_t servers) noexcept;

// The maximum number of servers of a cluster.
inline constexpr std::size_t kClusterSizeMax = 16;

struct ClientOptions {
  // Servers that share the keys. All clients must have the same list, in the same order.
  std::vector<Address> servers{Address{}};
  // The servers of one cluster, in any order, instead of `servers`. The client finds the leader,
  // also after a failover, and keeps its locks through a failover. It contacts only these
  // addresses; TLS certificates must name each as given here.
  std::vector<Address> cluster{};
  ConnectOptions connect{};
  // The longest time that a release, including a destructor's, waits for an answer.
  Duration release_timeout = std::chrono::seconds(5);
};

// Acquires one key, or several keys in one step: all of them or none.
//
// One key is held by its connection. Several have one fence, larger than all earlier fences of
// these keys, and are renewed, lost and released together. Their holder is a unique name instead of
// the connection, so that after a crash of this process the keys are held until their lease
// expires.
//
// Old servers do not support shared locks, several permits and several keys: `unsupported`.
struct LockRequest {
  // 1 to kKeysPerSetMax, no duplicate kind and key; `invalid` unless all are on one server.
  KeyItems keys;
  // The longest time in the queue, once connected; zero does not wait. The wait continues while the
  // server is down, restarts or stops: the client then queues again (HeldLock::queued_again). If a
  // server cuts the wait for several keys, the client requests the rest again.
  Duration wait{};
  Lease lease{};  // required for several permits of one key
  // Called at most once, with HeldLock::loss(), on the background thread. It must not throw, and
  // must not block because it delays all renewals of the client. It may release or destroy the
  // HeldLock.
  std::function<void(const Status&)> on_lost{};
  // Called each time that the lock becomes suspect, under the rules of on_lost. One key only.
  std::function<void(const Status&)> on_suspect{};
  // Called by acquire() before it resends the request, with the cause of the interruption.
  std::function<void(const Status&)> on_interrupted{};
};

// Two-phase acquisition: a place in the queue. The destructor leaves the queue. Used by one thread
// at a time.
class QueuePlace {
 public:
  QueuePlace() noexcept;  // no place
  ~QueuePlace();
  QueuePlace(QueuePlace&&) noexcept;
  QueuePlace& operator=(QueuePlace&&) noexcept;

  // Whether the lock was granted at once. The lease is running and is not renewed before wait().
  bool is_granted() const noexcept;
  // Waits for the grant and always uses up the place. If the place is lost with the server or the
  // connection, the client queues again until the wait is over. `lease_expired`: the lease of the
  // grant expired before this call. `lost`: the server has revoked the grant.
  Result<HeldLock> wait(Duration wait, std::stop_token stop = {});

 private:
  friend class Client;
  class Impl;

  explicit QueuePlace(std::unique_ptr<Impl> impl) noexcept;

  std::unique_ptr<Impl> impl_;
};

class Client {
 public:
  // Does not connect yet; later calls return `invalid` for unusable options. Throws
  // std::invalid_argument without servers, and std::system_error if no thread can be started.
  explicit Client(ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // If there was no answer to a request for several keys, also because the stop token fired, this
  // releases what the server may have granted, for at most ClientOptions::release_timeout.
  Result<HeldLock> acquire(const LockRequest& request, std::stop_token stop = {});
  // Joins the queue of one key and returns at once. Ignores LockRequest::wait.
  Result<QueuePlace> enqueue(const LockRequest& request, std::stop_token stop = {});

  // The key's server; in a cluster, the last known leader.
  const Address& server_of(std::string_view key) const noexcept;
  // A new connection to the key's server; in a cluster, to the current leader.
  Result<Connection> connect(std::string_view key, std::stop_token stop = {});

 private:
  class Impl;

  std::unique_ptr<Impl> impl_;  // never reassigned
};

}  // namespace lockd::client
