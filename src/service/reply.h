// The result of a Call, typed. A codec writes it in its protocol's words.
//
// The views and pointers in a reply are valid until the session's next call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lockd/engine.h"
#include "replication/records.h"
#include "server/access/permit.h"
#include "server/client_registry.h"
#include "server/reports/report.h"
#include "server/session/peer.h"

namespace lockd {

// No reply yet: the session is blocked until an event ends the call.
struct Blocked {};
// The call was executed, and there is nothing else to say.
struct Done {};

struct Granted {
  Grant grant;
};
// Enqueue: the session has a place in the queue.
struct Queued {};
struct Renewed {
  Grant grant;
};
struct Released {
  ReleaseResult result;
};

struct FenceFound {
  FenceStatus status;
};

// The signal was sent to this many subscribers.
struct SignalSent {
  std::size_t delivered = 0;
};
// A stream of events or signals begins.
struct StreamBegun {};

// The next piece of a report. The report ends with a piece that has no rest.
struct ReportPart {
  const ReportPiece* piece = nullptr;
};

struct Revoked {
  RevokeResult result;
};
struct Disconnected {
  const ClientStatus* client = nullptr;
};

struct ClusterReport {
  std::string json;
};
struct SnapshotBegun {
  BatchId base{};
  BatchId head{};
};
struct TransferBegun {
  std::int64_t epoch = 0;
  bool already_leads = false;
};

// An empty problem means healthy.
struct Health {
  std::string_view problem{};
};

struct CallerDescription {
  const Permit* permit = nullptr;
  const Peer* peer = nullptr;
};

// The hold of a key whose lease ends last. `peer` and `note` are empty for a client that lacks the
// right `read`.
struct HeldBy {
  std::string holder;
  std::string client;
  std::string peer;
  std::string note;
  Fence fence = 0;
  Mode mode = Mode::exclusive;
  Duration held{};
  Duration remaining{};
};

// A key that prevented a grant.
struct KeyInTheWay {
  Conflict conflict;
  std::optional<HeldBy> held_by{};
};

struct LeaderAddress {
  std::string line;  // "host:port"; "-" if it is not known
  std::string http;
};

// The engine refused the call.
struct Refused {
  Outcome outcome = Outcome::ok;
  std::vector<KeyInTheWay> in_the_way{};  // of an Acquire that asked for an explanation
  std::optional<std::size_t> missing{};   // Renew of several keys: the first that is not held
  std::shared_ptr<const LeaderAddress> leader{};  // outcome not_leader
  bool may_be_in_force = false;  // the journal has failed: a restart decides whether the hold lasts
};

// The server rejected the call before it reached the engine.
struct Rejected {
  enum class Reason : std::uint8_t {
    denied,                  // `detail` names the right or the prefixes
    draining,                // the server is stopping
    too_many_reports,        // too many listings wait
    too_many_watchers,       // --max-watchers
    too_many_subscriptions,  // --max-subscriptions
    already_streaming,       // the connection has a stream
    already_listening,       // the connection listens by the line command
    no_history,              // --history 0
    no_metrics,              // --metrics is off
    no_cluster,
    no_such_client,
    no_such_server,
    server_not_ready,  // `detail` says why it cannot lead
  };
  Reason reason = Reason::denied;
  std::string detail{};
};

inline Rejected reject(Rejected::Reason reason, std::string detail = {}) {
  return {reason, std::move(detail)};
}

using Reply =
    std::variant<Blocked, Done, Granted, Queued, Renewed, Released, FenceFound, SignalSent,
                 StreamBegun, ReportPart, Revoked, Disconnected, ClusterReport, SnapshotBegun,
                 TransferBegun, Health, CallerDescription, Refused, Rejected>;

inline bool is_blocked(const Reply& reply) { return std::holds_alternative<Blocked>(reply); }

}  // namespace lockd
