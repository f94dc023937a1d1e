#include "lockctl/output/exit_codes.h"

#include <array>

namespace lockd::cli {
namespace {

constexpr auto kCommon = std::to_array<ExitMeaning>({
    {"0", "EX_OK", "Done."},
    {"1", "",
     "Not to be had: somebody else holds it, the wait was over, or what was to be renewed or "
     "released is not held under that token."},
    {"64", "EX_USAGE", "The command line is wrong; nothing was done."},
    {"65", "EX_DATAERR",
     "The request makes no sense to the server, such as another limit than that of a semaphore in "
     "use; or a journal is damaged."},
    {"66", "EX_NOINPUT",
     "A directory or file that was named cannot be read, or has no journal in it."},
    {"69", "EX_UNAVAILABLE", "The server cannot be reached, does not answer, or has gone away."},
    {"70", "EX_SOFTWARE", "A bug in lockctl."},
    {"71", "EX_OSERR", "The system refused: no memory, no more processes."},
    {"74", "EX_IOERR", "The output cannot be written."},
    {"75", "EX_TEMPFAIL",
     "The server cannot do it now: too many keys or waiters, a full disk, it is stopping, or it "
     "does not lead its cluster. Try again later."},
    {"76", "EX_PROTOCOL", "What the server answered makes no sense."},
    {"77", "EX_NOPERM", "The token is wrong or missing, or the certificate cannot be trusted."},
    {"78", "EX_CONFIG", "A setting is wrong or missing: a variable, the file, an address."},
});

}  // namespace

std::span<const ExitMeaning> common_exits() { return kCommon; }

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
    case Outcome::storage:
    case Outcome::not_leader:
    case Outcome::draining: return kExitTemporary;
    case Outcome::limit_mismatch: return kExitData;
    case Outcome::unauthorized:
    case Outcome::untrusted: return kExitNoPermission;
    case Outcome::lost:
    case Outcome::unsure: return kExitLost;
    case Outcome::unreachable:
    case Outcome::disconnected:
    case Outcome::no_reply:
    case Outcome::cancelled: return kExitUnavailable;
    case Outcome::garbled: return kExitProtocol;
    case Outcome::invalid: return kExitUsage;
  }
  return kExitSoftware;
}

}  // namespace lockd::cli
