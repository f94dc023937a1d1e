#include "lockd/client/outcome.h"

namespace lockd::client {

std::string_view describe(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::ok: return "done";
    case Outcome::queued: return "in the queue";
    case Outcome::timeout: return "the wait timed out";
    case Outcome::refused: return "the server refused";
    case Outcome::already_enqueued: return "this connection is in that queue already";
    case Outcome::not_enqueued: return "this connection is not in that queue";
    case Outcome::lease_expired: return "the lease ran out before it was taken";
    case Outcome::max_locks: return "the server has as many keys as it may";
    case Outcome::max_waiters: return "the key has as many waiters as it may";
    case Outcome::max_holds: return "the server, or this client, has as many holds as it may";
    case Outcome::limit_mismatch: return "the semaphore has another limit";
    case Outcome::mode_mismatch: return "it was asked for in the other mode before";
    case Outcome::permits_mismatch: return "it was asked for with other permits before";
    case Outcome::storage: return "the server's disk is full";
    case Outcome::not_leader: return "the server does not lead its cluster";
    case Outcome::denied:
      return "the server denies us that: we lack the right, or it is not for this key";
    case Outcome::unsupported: return "the server is too old for that";
    case Outcome::draining: return "the server is stopping";
    case Outcome::unauthorized: return "the server did not let us in";
    case Outcome::lost: return "the lock is held no more";
    case Outcome::unsure: return "the lease ran out without a confirmed renewal";
    case Outcome::suspect:
      return "the connection of the lock has ended, and no new one has renewed it yet";
    case Outcome::unreachable: return "the server cannot be reached";
    case Outcome::untrusted: return "the server's certificate cannot be verified";
    case Outcome::disconnected: return "the connection has ended";
    case Outcome::no_reply: return "the server did not answer in time";
    case Outcome::garbled: return "the server's answer makes no sense";
    case Outcome::cancelled: return "cancelled";
    case Outcome::invalid: return "the request is invalid";
  }
  return "unknown";
}

std::string describe(const Status& status) {
  return status.detail.empty() ? std::string(describe(status.outcome)) : status.detail;
}

}  // namespace lockd::client
