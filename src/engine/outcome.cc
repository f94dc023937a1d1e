#include "lockd/types.h"

namespace lockd {

std::string_view describe(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::ok: return "done";
    case Outcome::queued: return "in the queue";
    case Outcome::held: return "held by someone else";
    case Outcome::timeout: return "the wait timed out";
    case Outcome::cancelled: return "the wait was cancelled";
    case Outcome::closed: return "the engine is closed";
    case Outcome::not_holder: return "held, but not by this holder with this token";
    case Outcome::stale: return "held under a larger fence";
    case Outcome::expired: return "not held: the lease is over";
    case Outcome::max_keys: return "no room for another key";
    case Outcome::max_waiters: return "no room for another waiter";
    case Outcome::limit_mismatch: return "in use with another limit";
    case Outcome::already_enqueued: return "already in the queue";
    case Outcome::not_enqueued: return "not in the queue";
    case Outcome::storage: return "the journal cannot take it";
    case Outcome::not_leader: return "this server does not lead";
    case Outcome::fences_exhausted: return "no fence is left below 2^53";
    case Outcome::invalid_key: return "a key is 1 to 256 bytes of UTF-8 without control characters";
    case Outcome::invalid_holder:
      return "a holder is 1 to 256 bytes of UTF-8 without control characters";
    case Outcome::invalid_ttl: return "a lease is longer than zero";
    case Outcome::invalid_wait: return "a wait is not negative";
    case Outcome::invalid_limit: return "a limit is 1 to 2147483647, and 1 for a lock";
  }
  return "unknown";
}

}  // namespace lockd
