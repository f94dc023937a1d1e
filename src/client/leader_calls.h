// Blocking calls to whoever leads a cluster.
#pragma once

#include <memory>
#include <stop_token>
#include <string_view>

#include "client/conversation.h"
#include "client/leader_search.h"
#include "lockd/client/boot_clock.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

// A conversation with the server that leads, which proved it by answering `barrier`: so what is
// asked next meets neither a follower nor a server that accepts and then hangs, except in the
// moment of a change. The search takes ConnectOptions::connect_timeout at most, and one server a
// part of what is left of that. A server that stands alone is not asked whether it leads.
Result<std::unique_ptr<Conversation>> open_at_leader(LeaderSearch& search, std::stop_token stop);

// Asks for what may be asked for twice, until an answer has come or `deadline`. A server that
// stands alone is asked once.
Status ask_leader(LeaderSearch& search, std::string_view lines, BootClock::time_point deadline);

}  // namespace lockd::client
