// Blocking calls over a LineConnection: each ends by an answer, by its deadline, or by a stop
// token.
//
// A call that ends without an answer closes the connection: the reply may still come, and nobody
// could tell it from that to the next request.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "client/claim.h"
#include "client/endpoint.h"
#include "client/leader_search.h"
#include "client/line_connection.h"
#include "lockd/client/boot_clock.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

// Looks the server up, connects, and waits until it is ready, which it must be by `deadline`.
Result<std::unique_ptr<LineConnection>> open_connection(std::shared_ptr<const Endpoint> endpoint,
                                                        BootClock::time_point deadline,
                                                        std::stop_token stop);

struct Request {
  std::string_view lines;
  Duration wait{};  // how long the server may take before it answers, as it was asked to
  LineConnection::ReplySize size = LineConnection::ReplySize::short_line;
  // What to say when the stop token fires, before the connection is closed.
  std::string_view on_cancel{};
  ReadStatus read_status = status_of;  // for calls that look for who leads
};

struct Reply {
  std::string line{};
  BootClock::time_point sent_at{};  // just before the first byte of the request left
};

// `ok` is any reply, whatever it says. It may take the request's wait, and then the endpoint's
// reply_timeout.
Result<Reply> ask(LineConnection& connection, const Request& request, std::stop_token stop);
// The same, until a time of the caller's.
Result<Reply> ask_until(LineConnection& connection, const Request& request,
                        BootClock::time_point deadline, std::stop_token stop);

// Waits for what `done` looks for, after each piece of news. The outcome is ok when it has come,
// `timeout` at the deadline, `cancelled`, or the failure of a connection that has ended; the
// connection is left as it is.
Status advance_until(LineConnection& connection, BootClock::time_point deadline,
                     std::stop_token stop, const std::function<bool()>& done);

// Waits, and does nothing: `ok`, or `cancelled`.
Status pause_until(BootClock::time_point time, std::stop_token stop);

// --- calls to whoever leads a cluster ---

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
