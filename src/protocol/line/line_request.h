// What a client of the line protocol asks for, understood and checked.
//
// For the session that executes it. Pure: three lines go in, a request or the rule that they break
// comes out. The request's views are those of the lines, and live as long as the buffer that they
// lie in. Nothing here allocates; safe from any thread.
//
//   const auto parsed = parse_request(framed.lines, phase);
//   if (!parsed) return close_with_error(parsed.violation);
//   execute(parsed.request);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lockd/types.h"
#include "protocol/line/line_framer.h"
#include "protocol/line/line_token.h"

namespace lockd {

// Which rule of the protocol a client broke. The reply to each is `error`. The connection closes,
// unless --no-close-on-violation is set. The numbers are for the log and the counters.
enum class Violation : std::uint8_t {
  none = 0,
  unknown_command = 3,
  not_an_integer = 4,  // or more seconds than fit a Duration
  bad_key = 5,         // or channel, pattern or group
  negative_timeout = 6,
  empty_token = 7,
  bad_arguments = 8,  // too few, too many; a signal's payload blank or too long; a client's note
  bad_lease = 9,
  read_timeout = 10,   // 10 to 12 are found by the session and the framer
  disconnected = 11,   // the client left in the middle of a request
  line_too_long = 12,  // LineFramer::Status::line_too_long
  bad_limit = 13,      // or permits: none, or more than the limit
  http_request = 14,   // or its header `Host`, where a command is due
};
inline constexpr std::size_t kViolationCodes = 15;

// A short phrase for people: "unknown command".
std::string_view describe(Violation violation) noexcept;

// Whether it is known where the next request begins. Behind an HTTP request no line is executed: a
// web page can have a browser send lines of the page's choice as a request's body.
constexpr bool leaves_framing_intact(Violation violation) {
  return violation != Violation::read_timeout && violation != Violation::disconnected &&
         violation != Violation::line_too_long && violation != Violation::http_request;
}

enum class Command : std::uint8_t {
  acquire,     // l, sl
  release,     // r, sr
  renew,       // n, sn
  enqueue,     // e, se
  await_turn,  // w, sw
  client,
  auth,
  stats,
  ping,
  barrier,
  listen,
  unlisten,
  signal,
  api,
  peer,  // another server's
};

// Whether the client has yet to send the auth token.
enum class Phase : std::uint8_t {
  before_auth,    // `auth` is the only command there is
  auth_optional,  // a certificate has authenticated the client, and nothing was acquired by it
  open,           // `auth` is no command: sent already, too late, or not asked for
};

struct LineRequest {
  Command command = Command::ping;
  Kind kind = Kind::lock;
  Mode mode = Mode::exclusive;    // acquire, enqueue, of a lock
  std::uint32_t limit = 1;        // acquire, enqueue, of a semaphore
  std::uint32_t permits = 1;      // acquire, enqueue, of a semaphore; at most the limit
  std::string_view key{};         // the channel of signal, the pattern of listen and unlisten,
                                  // the name of client and of peer, the method and path of api
  Duration wait{};                // acquire, await_turn
  std::optional<Duration> ttl{};  // acquire, enqueue, renew; none named: the default's to choose
  std::optional<std::uint64_t> secret{};  // acquire, enqueue: the client's own, of the token
  std::optional<LineToken> token{};       // release, renew; none: it names no grant, answer `error`
  std::string_view text{};  // auth: the auth token; listen, unlisten: the group, or empty;
                            // signal: the payload; client: the note, or empty; api: a
                            // JSON object, or blank; peer: what it shows
};

struct ParsedRequest {
  Violation violation = Violation::none;
  LineRequest request{};  // when there is no violation

  explicit operator bool() const { return violation == Violation::none; }
};

// Where a request breaks several rules the first counts: of the command, the key, the number of
// arguments, their form as integers, their range. Before auth the session answers every violation,
// the framer's too, with `error_auth`. Precondition: the lines are within the framer's limits.
ParsedRequest parse_request(const RequestLines& lines, Phase phase) noexcept;

}  // namespace lockd
