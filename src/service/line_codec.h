// The line protocol's requests as calls, and replies as its lines. Pure.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "protocol/line/line_request.h"
#include "protocol/operations.h"
#include "server/settings/options.h"
#include "service/call.h"
#include "service/reply.h"

namespace lockd {

// The operation of a command. Precondition: the command is none of auth, api and peer, which the
// session executes itself.
Operation operation_of(Command command);

// The report that the command `stats` asks for.
std::shared_ptr<const ReportRequest> stats_request();

// Returns `use(call)`, where `call` is what the request asks for, as one of the types of a Call: a
// variant would be copied with every request. Precondition: as above.
template <typename Use>
auto with_call(const LineRequest& request, const Options& options, Use use) {
  // Replies name the lease in whole seconds, so the default is rounded up: no client may believe in
  // more than there is.
  const auto ttl = [&] {
    return request.ttl.value_or(std::chrono::ceil<std::chrono::seconds>(options.default_lease_ttl));
  };
  const auto item = [&] {
    return KeyItem(request.key, request.kind, request.mode, request.limit, request.permits);
  };
  // A lock token that no grant can have becomes fence 0, which nothing has.
  const auto hold = [&] {
    const LineToken token = request.token.value_or(LineToken{});
    return HoldId{.keys = KeyItem(request.key, request.kind),
                  .holder = Holder(nullptr, token.secret),
                  .fence = token.fence};
  };
  switch (request.command) {
    case Command::acquire:
      return use(Acquire{
          .keys = item(), .owner = {.secret = request.secret}, .ttl = ttl(), .wait = request.wait});
    case Command::enqueue:
      return use(Enqueue{.key = item(), .owner = {.secret = request.secret}, .ttl = ttl()});
    case Command::await_turn: return use(AwaitTurn{request.kind, request.key, request.wait});
    case Command::release: return use(Release{hold()});
    case Command::renew: return use(Renew{hold(), request.ttl});
    case Command::client: return use(Identify{request.key, request.text});
    case Command::stats: return use(ReadReport{.report = stats_request(), .local = true});
    case Command::barrier: return use(ConfirmLeadership{});
    case Command::listen: return use(Listen{request.key, request.text});
    case Command::unlisten: return use(Unlisten{request.key, request.text});
    case Command::signal: return use(Publish{request.key, request.text});
    case Command::ping:
    case Command::auth:
    case Command::api:
    case Command::peer: break;
  }
  return use(Ping{});
}

// Appends the line that replies to `command`. Precondition: the reply is neither Blocked nor a
// piece of a report.
void write_reply(std::string& out, Command command, const Reply& reply, const Options& options);

}  // namespace lockd
