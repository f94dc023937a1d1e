// The results of client calls: values, never exceptions.
//
//   auto lock = client.acquire({.key = "my-job", .wait = 10s});
//   if (!lock) return print_error(lock.outcome, lock.detail);
//   use(*lock);
//
// Calls throw only for violated preconditions, as documented there, and when memory runs out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace lockd::client {

enum class Outcome : std::uint8_t {
  ok,      // done
  queued,  // in the queue: enqueue() only

  // Replies of the server. Nothing was changed and the connection stays usable.
  timeout,           // not granted within the wait; the request has left the queue
  refused,           // `error`: the token identifies no grant, or another error of the command
  already_enqueued,  // this connection has a place in that queue
  not_enqueued,      // this connection has no place in that queue
  lease_expired,     // granted, but the lease expired before the client accepted it
  max_locks,         // the server's limit of keys is reached
  max_waiters,       // the key's limit of waiters is reached
  max_holds,         // the server's or this client's limit of holds and places is reached
  limit_mismatch,    // the semaphore has another limit
  mode_mismatch,     // an earlier request of this holder is in force in the other mode
  permits_mismatch,  // an earlier request of this holder is in force with other permits
  storage,           // the server's disk is full
  not_leader,        // another server of the cluster leads: see Status::leader
  denied,            // the auth token or the certificate lacks the permission
  unsupported,       // the server is too old for the request
  draining,          // the server is stopping; it closes connections that hold nothing
  unauthorized,      // the auth token is wrong or missing; the connection is closed

  // A lock is no longer held.
  lost,    // as reported by the server
  unsure,  // the lease has expired by the client's clock without a confirmed renewal
  // A lock may no longer be held: its connection has ended and no renewal is confirmed yet.
  suspect,

  // No reply. A request that was sent may have been executed. The connection is closed.
  unreachable,   // no connection: name resolution, network, TLS, or a timeout
  untrusted,     // the server's certificate could not be verified
  disconnected,  // the connection has ended
  no_reply,      // no reply in time
  garbled,       // an invalid reply
  cancelled,     // the stop token fired

  invalid,  // invalid request; not sent
};

// A short phrase for people: "the wait timed out", "the server cannot be reached".
std::string_view describe(Outcome outcome) noexcept;

struct Status {
  Outcome outcome = Outcome::ok;
  std::string detail{};  // one line for people, more specific than describe(); may be empty
  std::string leader{};  // not_leader: "host:port" of the leader, or empty if there is none

  explicit operator bool() const { return outcome == Outcome::ok; }
};

// One line for people: the detail if there is one, else describe(outcome).
std::string describe(const Status& status);

// A value if the outcome is ok, else the error.
template <class T>
struct [[nodiscard]] Result : Status {
  T value{};

  Result() = default;
  Result(T made) : value(std::move(made)) {}              // NOLINT: a value is a result
  Result(Status failure) : Status(std::move(failure)) {}  // NOLINT: and so is a failure
  Result(Outcome outcome, std::string detail) : Status{outcome, std::move(detail)} {}

  // Precondition: the outcome is ok.
  T& operator*() { return value; }
  const T& operator*() const { return value; }
  T* operator->() { return &value; }
  const T* operator->() const { return &value; }
};

}  // namespace lockd::client
