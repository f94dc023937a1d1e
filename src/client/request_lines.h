// What is sent to a server: three lines for each request.
//
// Pure; for any thread. A request that no server would take is not sent: it is answered here, as
// `invalid`, with the reason. Whatever comes out ends with its third LF and contains no other.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "lockd/client/connection.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

// The longest wait or lease: what 64 bits hold in nanoseconds.
inline constexpr std::chrono::seconds kSecondsMax{9'223'372'036};

Result<std::string> acquire_lines(const LineAcquire& request);
Result<std::string> release_lines(const LineHold& hold);
Result<std::string> renew_lines(const LineHold& hold, Lease lease);
Result<std::string> enqueue_lines(const LineEnqueue& request);
Result<std::string> await_lines(const LineAwait& request);
Result<std::string> listen_lines(std::string_view pattern, std::string_view group);
Result<std::string> unlisten_lines(std::string_view pattern, std::string_view group);
Result<std::string> publish_lines(std::string_view channel, std::string_view payload);
Result<std::string> api_lines(const ApiCall& call);
Result<std::string> auth_lines(std::string_view auth_token);
Result<std::string> client_lines(std::string_view name, std::string_view note);

inline constexpr std::string_view kStatsLines = "stats\n\n\n";
inline constexpr std::string_view kPingLines = "ping\n\n\n";
inline constexpr std::string_view kBarrierLines = "barrier\n\n\n";

}  // namespace lockd::client
