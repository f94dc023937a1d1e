#include "client/request_lines.h"

#include <cstdint>

#include "base/pattern.h"
#include "base/text.h"

namespace lockd::client {
namespace {

using std::chrono::seconds;

constexpr std::size_t kLineSizeMax = 256;
constexpr std::size_t kAuthTokenSizeMax = 65'536;
constexpr std::size_t kApiJsonSizeMax = 65'536;
constexpr const char* kGroupBlanks = " \t";

Status invalid(std::string why) { return {Outcome::invalid, std::move(why)}; }

Status check_key(std::string_view key) {
  if (is_name(key)) return {};
  return invalid("a key is 1 to 256 bytes of UTF-8 without control characters");
}

Status check_wait(seconds wait) {
  if (wait >= seconds(0) && wait <= kSecondsMax) return {};
  return invalid("a wait is 0 to 9223372036 seconds");
}

Status check_lease(Lease lease) {
  if (!lease || (*lease >= seconds(1) && *lease <= kSecondsMax)) return {};
  return invalid("a lease is 1 to 9223372036 seconds");
}

// How much of its key a LineAcquire or a LineEnqueue asks for.
Status check_share(const auto& request) {
  if (request.kind == Kind::lock) {
    if (request.limit != 1) return invalid("a lock has no permits: its limit is 1");
    if (request.permits != 1) return invalid("a lock has no permits: it is held alone or shared");
    return {};
  }
  if (request.limit < 1 || request.limit > kLimitMax) {
    return invalid("a semaphore's limit is 1 to 2147483647");
  }
  if (request.mode != Mode::exclusive) {
    return invalid("a semaphore is not held shared: it is held by permits");
  }
  if (request.permits < 1 || request.permits > request.limit) {
    return invalid("permits are 1 to the semaphore's limit");
  }
  if (request.permits == 1 || request.lease) return {};
  return invalid("several permits need a lease: they are named behind it");
}

// A word of whatever form: other servers have tokens of their own.
Status check_token(std::string_view token) {
  constexpr std::size_t kLeaseSizeMax = 11;  // " 9223372036"
  const bool fits = !token.empty() && token.size() + kLeaseSizeMax <= kLineSizeMax;
  if (fits && is_plain_text(token) && token.find(' ') == std::string_view::npos) return {};
  return invalid("a token is one word");
}

Status check_pattern(std::string_view pattern, std::string_view group) {
  if (!is_pattern(pattern)) {
    return invalid(
        "a pattern is at most 32 tokens joined by dots; * and > are whole tokens, > the last");
  }
  if (group.empty()) return {};
  // A server takes the blanks around it away: what is left must be the same name.
  const bool trimmed = group.find_first_of(kGroupBlanks) != 0 &&
                       group.find_last_of(kGroupBlanks) != group.size() - 1;
  if (is_name(group) && trimmed) return {};
  return invalid("a group is a name as keys are, without blanks around it");
}

std::string lines(std::string_view command, std::string_view key, std::string_view argument) {
  std::string text;
  text.reserve(command.size() + key.size() + argument.size() + 3);
  for (const std::string_view line : {command, key, argument}) text.append(line).push_back('\n');
  return text;
}

// "l" and "sl".
std::string of_kind(Kind kind, std::string_view command) {
  return (kind == Kind::semaphore ? "s" : "") + std::string(command);
}

std::string number(seconds value) { return std::to_string(value.count()); }

std::string behind_blank(Lease lease) { return lease ? " " + number(*lease) : ""; }

// 16 hex digits.
std::string as_word(std::uint64_t secret) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string word = " as=";
  for (int shift = 60; shift >= 0; shift -= 4) word += kDigits[secret >> shift & 0xf];
  return word;
}

// The limit, the lease, and what not every server knows only where it is asked for: each behind a
// blank.
std::string terms_of(const auto& request) {
  const bool semaphore = request.kind == Kind::semaphore;
  return (semaphore ? " " + std::to_string(request.limit) : "") + behind_blank(request.lease) +
         (request.mode == Mode::shared ? " shared" : "") +
         (request.permits > 1 ? " " + std::to_string(request.permits) : "") +
         (request.secret ? as_word(*request.secret) : "");
}

}  // namespace

Result<std::string> acquire_lines(const LineAcquire& request) {
  if (Status bad = check_key(request.key); !bad) return bad;
  if (Status bad = check_wait(request.wait); !bad) return bad;
  if (Status bad = check_lease(request.lease); !bad) return bad;
  if (Status bad = check_share(request); !bad) return bad;
  return lines(of_kind(request.kind, "l"), request.key, number(request.wait) + terms_of(request));
}

Result<std::string> release_lines(const LineHold& hold) {
  if (Status bad = check_key(hold.key); !bad) return bad;
  if (Status bad = check_token(hold.token); !bad) return bad;
  return lines(of_kind(hold.kind, "r"), hold.key, hold.token);
}

Result<std::string> renew_lines(const LineHold& hold, Lease lease) {
  if (Status bad = check_key(hold.key); !bad) return bad;
  if (Status bad = check_token(hold.token); !bad) return bad;
  if (Status bad = check_lease(lease); !bad) return bad;
  return lines(of_kind(hold.kind, "n"), hold.key, std::string(hold.token) + behind_blank(lease));
}

Result<std::string> enqueue_lines(const LineEnqueue& request) {
  if (Status bad = check_key(request.key); !bad) return bad;
  if (Status bad = check_lease(request.lease); !bad) return bad;
  if (Status bad = check_share(request); !bad) return bad;
  const std::string terms = terms_of(request);
  return lines(of_kind(request.kind, "e"), request.key, terms.empty() ? "" : terms.substr(1));
}

Result<std::string> await_lines(const LineAwait& request) {
  if (Status bad = check_key(request.key); !bad) return bad;
  if (Status bad = check_wait(request.wait); !bad) return bad;
  return lines(of_kind(request.kind, "w"), request.key, number(request.wait));
}

Result<std::string> listen_lines(std::string_view pattern, std::string_view group) {
  if (Status bad = check_pattern(pattern, group); !bad) return bad;
  return lines("listen", pattern, group);
}

Result<std::string> unlisten_lines(std::string_view pattern, std::string_view group) {
  if (Status bad = check_pattern(pattern, group); !bad) return bad;
  return lines("unlisten", pattern, group);
}

Result<std::string> publish_lines(std::string_view channel, std::string_view payload) {
  if (!is_channel(channel)) {
    return invalid("a channel is at most 32 tokens joined by dots, without * and >");
  }
  if (!is_payload(channel, payload)) {
    return invalid("a payload is one line that is not blank, of at most " +
                   std::to_string(kSignalSizeMax) + " bytes together with its channel");
  }
  return lines("signal", channel, payload);
}

Result<std::string> api_lines(const ApiCall& call) {
  const std::string target = std::string(call.method) + ' ' + std::string(call.path);
  if (!is_name(target)) {
    return invalid("a method and a path are at most 256 bytes without control characters");
  }
  if (call.json.size() <= kApiJsonSizeMax && call.json.find('\n') == std::string_view::npos) {
    return lines("api", target, call.json);
  }
  return invalid("the JSON of a call must be one line of at most 65536 bytes");
}

Result<std::string> auth_lines(std::string_view auth_token) {
  if (auth_token.size() <= kAuthTokenSizeMax && auth_token.find('\n') == std::string_view::npos) {
    return lines("auth", "", auth_token);
  }
  return invalid("the auth token must be one line of at most 65536 bytes");
}

Result<std::string> client_lines(std::string_view name, std::string_view note) {
  if (is_name(name) && (note.empty() || is_name(note))) return lines("client", name, note);
  return invalid("a client's name and note are at most 256 bytes without control characters");
}

}  // namespace lockd::client
