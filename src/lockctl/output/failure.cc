#include "lockctl/output/failure.h"

#include "client/reply.h"

namespace lockd::cli {

ExitCode exit_code_of(client::Outcome outcome) {
  using client::Outcome;
  switch (outcome) {
    case Outcome::ok:
    case Outcome::queued: return kExitOk;
    case Outcome::timeout:
    case Outcome::refused:
    case Outcome::already_enqueued:
    case Outcome::not_enqueued:
    case Outcome::lease_expired: return kExitConflict;
    case Outcome::max_locks:
    case Outcome::max_waiters:
    case Outcome::max_holds:
    case Outcome::storage:
    case Outcome::not_leader:
    case Outcome::draining: return kExitTemporary;
    case Outcome::limit_mismatch:
    case Outcome::mode_mismatch:
    case Outcome::permits_mismatch: return kExitData;
    case Outcome::denied:
    case Outcome::unauthorized:
    case Outcome::untrusted: return kExitNoPermission;
    case Outcome::lost:
    case Outcome::unsure:
    case Outcome::suspect: return kExitLost;
    case Outcome::unreachable:
    case Outcome::disconnected:
    case Outcome::no_reply:
    case Outcome::cancelled: return kExitUnavailable;
    case Outcome::unsupported:
    case Outcome::garbled: return kExitProtocol;
    case Outcome::invalid: return kExitUsage;
  }
  return kExitSoftware;
}

Failure failure_of(const client::Status& status) {
  if (status.detail == client::kIsHttpPort) {
    return {kExitConfig, status.detail + ": give it as --http, and the line port as --server"};
  }
  return {exit_code_of(status.outcome), client::describe(status)};
}

}  // namespace lockd::cli
