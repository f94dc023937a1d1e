// The calls whose execution depends on nothing that a session has: they are executed at once, and
// leave nothing behind in the session.
#pragma once

#include <string_view>

#include "service/call.h"
#include "service/caller.h"
#include "service/reply.h"
#include "service/session_context.h"

namespace lockd {

Reply execute_stateless(SessionContext& context, const Caller& caller, const Renew& call);
Reply execute_stateless(SessionContext& context, const Caller& caller, const Release& call);
// Only the leader knows the last grant.
Reply execute_stateless(SessionContext& context, const Caller& caller, const ReadFence& call);
Reply execute_stateless(SessionContext& context, const Caller& caller,
                        const ConfirmLeadership& call);
Reply execute_stateless(SessionContext& context, const Caller& caller, const CheckHealth& call);
inline Reply execute_stateless(SessionContext&, const Caller&, const Ping&) { return Done{}; }
inline Reply execute_stateless(SessionContext&, const Caller& caller, const DescribeCaller&) {
  return CallerDescription{caller.permit().get(), &caller.peer()};
}

// Administrators' calls are logged with their names and reasons.
Reply execute_stateless(SessionContext& context, const Caller& caller, const Revoke& call);
Reply execute_stateless(SessionContext& context, const Caller& caller, const Resize& call);
Reply execute_stateless(SessionContext& context, const Caller& caller, const InspectCluster& call);
Reply execute_stateless(SessionContext& context, const Caller& caller, const BeginSnapshot& call);
// Replies when the transfer has begun; it takes as long as etcd does. GET /v1/cluster shows its
// end.
Reply execute_stateless(SessionContext& context, const Caller& caller,
                        const TransferLeadership& call);

// Records that an administrator disconnected the client.
void record_disconnect(SessionContext& context, const ClientStatus& client, std::string_view reason,
                       std::string_view by);

}  // namespace lockd
