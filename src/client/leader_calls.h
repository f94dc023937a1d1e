// Blocking calls to whoever leads a cluster.
#pragma once

#include <memory>
#include <stop_token>

#include "client/calls.h"
#include "client/leader_search.h"
#include "client/line_connection.h"
#include "lockd/client/boot_clock.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

// A connection with the server that leads, which proved it by answering `barrier`: so what is
// asked next meets neither a follower nor a server that accepts and then hangs, except in the
// moment of a change. The search takes ConnectOptions::connect_timeout at most, and one server a
// part of what is left of that. A server that stands alone is not asked whether it leads.
Result<std::unique_ptr<LineConnection>> open_at_leader(LeaderSearch& search, std::stop_token stop);

// Asks for what may be asked for twice, as everything may that goes by token: over `connection`,
// if there is one, until `reply_until`; and if that has ended, or in a cluster has brought no
// answer of a server that leads, over new ones until `deadline`. The server may not have released
// with the old one: it was told not to, has begun anew with its journal, or another leads now. One
// that stands alone is asked once more. `ok` is an answer, whatever it says.
Result<Reply> ask_by_token(const std::shared_ptr<Cluster>& cluster, LineConnection* connection,
                           const Request& request, BootClock::time_point reply_until,
                           BootClock::time_point deadline, std::stop_token stop);

}  // namespace lockd::client
