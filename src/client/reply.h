// What a server's replies mean.
//
// Pure; for any thread. A reply is a line without its LF. Old servers and new ones say some things
// differently, so no more is asked of a line than is needed: fields behind those that are known are
// left alone, and every word that begins with `error` is a refusal. What makes no sense all the
// same is `garbled`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockd/client/connection.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

// The detail of an answer that is garbled because it is one of HTTP.
inline constexpr std::string_view kIsHttpPort = "that is an HTTP port";

// A hold that the server has ended, and why.
struct Loss {
  enum class Cause : std::uint8_t { expired, revoked, unknown };

  std::string token{};
  Cause cause = Cause::unknown;
};

// By the first word; `acquired` is ok too.
Status status_of(std::string_view reply);

// What the replies of the commands bring, when they are ok. A lease is never longer than the one
// that was asked for. The times at which they were sent are the caller's to fill in.
Result<LineGrant> grant_of(std::string_view reply, Lease asked);
Result<LineRenewal> renewal_of(std::string_view reply, Lease asked);
Result<std::uint64_t> count_of(std::string_view reply);
Result<std::string> stats_of(std::string_view reply);
Result<ApiAnswer> api_answer_of(std::string_view reply);

// Whether the line is no reply but a push: a signal; an event of a stream; the loss of a hold.
bool is_signal(std::string_view line) noexcept;
bool is_event(std::string_view line) noexcept;
bool is_loss(std::string_view line) noexcept;
// Precondition: is_signal(). Up to the first blank it is the channel.
Signal signal_of(std::string_view push);
// Precondition: is_event().
std::string event_of(std::string_view push);
// Precondition: is_loss(). The token may be no token, and the cause missing.
Loss loss_of(std::string_view push);

// What its owner is told: `lost`, and the reason.
Status status_of(const Loss& loss);

// What a stranger has sent, in quotes, cut short and fit for a terminal.
std::string shown(std::string_view text);

// 0 when the token does not begin with 16 hex digits.
Fence fence_of(std::string_view token) noexcept;

}  // namespace lockd::client
