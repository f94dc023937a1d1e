// How a call to a server ended: a value, never an exception.
//
//   auto lock = client.acquire({.key = "my-job", .wait = 10s});
//   if (!lock) return complain(lock.outcome, lock.detail);
//   use(*lock);
//
// Plain values, for any thread. Exceptions are left for promises that the caller broke, as said at
// each function, and for memory that has run out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace lockd::client {

enum class Outcome : std::uint8_t {
  ok,      // done
  queued,  // in the queue: enqueue() only

  // The server's answers. Nothing was changed, and the connection is as good as before.
  timeout,  // not granted within the wait; no place in the queue is left
  refused,  // `error`: the token names no grant, or whatever else the command can mean by it
  already_enqueued,  // this connection has a place in that queue
  not_enqueued,      // this connection has none
  lease_expired,     // it was granted, and its lease ran out before anyone took it
  max_locks,         // the server has as many keys as it may
  max_waiters,       // the key has as many waiters as it may
  max_holds,         // the server, or this client, has as many holds and places as it may
  limit_mismatch,    // the semaphore has another limit
  mode_mismatch,     // it was asked for in the other mode before, and is in force
  permits_mismatch,  // it was asked for with another number of permits before, likewise
  storage,           // the server's disk is full
  not_leader,        // another server of the cluster leads: see Status::leader
  denied,            // the auth token, or the certificate, has no right to it
  unsupported,       // the server is too old for what the request asks for
  draining,          // the server is stopping; it closes a connection that holds nothing
  unauthorized,      // the auth token is wrong or missing; the connection is closed

  // A held lock is held no more.
  lost,    // the server has said so
  unsure,  // its lease has run out by the client's count, and no renewal was confirmed
  // A held lock may be held no more: its connection has ended, and no new one has renewed it yet.
  suspect,

  // There was no answer. Where a request had been sent, it may have been executed. The connection
  // is closed.
  unreachable,   // no connection could be made: the name, the network, TLS, or not in time
  untrusted,     // the server's certificate could not be verified
  disconnected,  // the connection has ended
  no_reply,      // the server did not answer in time
  garbled,       // what came is no answer
  cancelled,     // the stop token fired

  invalid,  // the request can be sent to no server; nothing was
};

// A short phrase for people: "the wait timed out", "the server cannot be reached".
std::string_view describe(Outcome outcome) noexcept;

struct Status {
  Outcome outcome = Outcome::ok;
  std::string detail{};  // one line for people; says more than describe(), or is empty
  std::string leader{};  // not_leader: "host:port" of who leads, or empty when nobody does

  explicit operator bool() const { return outcome == Outcome::ok; }
};

// One line for people: the detail, or else the phrase.
std::string describe(const Status& status);

// A value when the outcome is ok, and why there is none when it is not.
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
