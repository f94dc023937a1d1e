// What the server says on the line protocol: one line for each request, and what it pushes.
//
// For the session. Every function appends one whole line, LF included, to the connection's output,
// and allocates nothing while that has room. Pure; safe from any thread, each with its own output.
//
//   if (answer.outcome == Outcome::ok && is_grant) {
//     write_grant(out, request.command, {answer.grant.fence, secret}, answer.grant.ttl);
//   } else {
//     write_status(out, status_of(request.command, answer.outcome, options.detailed_errors));
//   }
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockd/types.h"
#include "protocol/line/line_request.h"
#include "protocol/line/line_token.h"

namespace lockd {

// The words that come from no outcome: done; a violation, or a token that names no grant; a wrong
// auth token, or anything but `auth` first; what the client may not do; and a request that came
// after the server began to stop.
inline constexpr std::string_view kStatusOk = "ok";
inline constexpr std::string_view kStatusError = "error";
inline constexpr std::string_view kStatusErrorAuth = "error_auth";
inline constexpr std::string_view kStatusErrorDenied = "error_denied";
inline constexpr std::string_view kStatusErrorDraining = "error_draining";

// The first word of the reply to `command`, or the whole reply. With `detailed`, some of what is
// else a bare `error` has a name. Precondition: `command` is one of the five that the engine
// answers, and `outcome` is not queued unless it is an enqueue: the others have no reply yet.
std::string_view status_of(Command command, Outcome outcome, bool detailed) noexcept;

// `<status>`
void write_status(std::string& out, std::string_view status);

// `ok <token> <lease_s>`, or, for an enqueue, `acquired <token> <lease_s>`. Never another field:
// old clients count them.
void write_grant(std::string& out, Command command, const LineToken& token, Duration ttl);

// `ok <seconds_remaining>`, rounded up: a lease that still runs never reads as 0.
void write_remaining(std::string& out, Duration remaining);

// `ok <count>`
void write_count(std::string& out, std::uint64_t count);

// `lost <token> <cause> <key>`: no reply, but a line that comes by itself. The key is last, for it
// may have spaces.
void write_lost(std::string& out, const LineToken& token, std::string_view cause,
                std::string_view key);

// `ok <status> <json>`, the answer to a call of the API. Line ends in `json`, which are none of its
// texts, become spaces.
void write_call_answer(std::string& out, int status, std::string_view json);

// `event <json>`, pushed, where the first member of `json` is then the event's name. Precondition:
// `json` is an object, in one line; the name needs no escapes.
void write_event(std::string& out, std::string_view event, std::string_view json);

// `ok <json>`, in pieces of which the first begins the line and the last ends it. Precondition: no
// LF in it.
void write_stats(std::string& out, std::string_view piece, bool begins, bool ends);

}  // namespace lockd
