// Caller: the identity of a session's client, and its rights.
//
// Belongs to its session, on the thread of the session's host.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "server/access/access.h"
#include "server/session/peer.h"
#include "service/call.h"
#include "service/reply.h"
#include "service/session_context.h"

namespace lockd {

class Caller {
 public:
  Caller(SessionContext& context, SessionId id, Peer peer);

  const Peer& peer() const { return peer_; }
  // What the client may do. Never null.
  const PermitPtr& permit() const { return permit_; }
  // The permit, if it is restricted to some keys; else null.
  PermitPtr restriction() const { return permit_->is_confined() ? permit_ : nullptr; }
  // Precondition: not null, and just found.
  void set_permit(const PermitPtr& permit);
  // Replaces the permit by the current one of the same credential. False if there is none any more,
  // or if the session is pushed signals or events that it does not allow: the session must then be
  // closed.
  bool renew_permit(bool is_pushed_to);

  // Whether the client may ask for such an operation now, whatever it is about; and why not.
  bool may(Operation operation) const {
    const OperationRule rule = rule_of(operation);
    return !is_too_late(operation) && permit_->may(rule.right) &&
           (rule.scope == Scope::keys || !permit_->is_confined());
  }
  Rejected rejection_of(Operation operation) const;
  // Nothing, if the client may use the names in the call.
  std::optional<Rejected> check_names(const Call& call) const;

  // "ops from 10.0.0.7:51234", for the log and the history.
  std::string admin_name() const;

 private:
  // The server is stopping, and does not begin such an operation any more.
  bool is_too_late(Operation operation) const {
    return context_.draining && operation != Operation::check_health &&
           (context_.hands_over() || rule_of(operation).takes);
  }
  Access::Time wall_time() const {
    return Access::Time(std::chrono::milliseconds(context_.unix_ms()));
  }

  SessionContext& context_;
  const SessionId id_;
  const Peer peer_;
  PermitPtr permit_;
  std::uint64_t generation_;  // of the permit
};

}  // namespace lockd
