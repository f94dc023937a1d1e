#include "protocol/line/line_reply.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <chrono>

namespace lockd {
namespace {

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits;  // of 2^64 - 1
  char* const first = digits.data();
  out.append(first, std::to_chars(first, first + digits.size(), number).ptr);
}

std::uint64_t seconds_up(Duration duration) {
  const auto seconds =
      std::chrono::ceil<std::chrono::seconds>(std::max(duration, Duration::zero()));
  return static_cast<std::uint64_t>(seconds.count());
}

void write_ok(std::string& out, std::uint64_t number) {
  out += "ok ";
  append_number(out, number);
  out += '\n';
}

}  // namespace

std::string_view status_of(Command command, Outcome outcome, bool detailed) noexcept {
  const bool enqueues = command == Command::enqueue;
  const auto in_detail = [detailed](std::string_view name) {
    return detailed ? name : kStatusError;
  };
  assert(outcome != Outcome::queued || enqueues);
  switch (outcome) {
    case Outcome::ok: return enqueues ? "acquired" : kStatusOk;
    case Outcome::queued: return "queued";
    case Outcome::held:  // a try: its wait of no seconds is over
    case Outcome::timeout: return "timeout";
    case Outcome::max_keys: return "error_max_locks";
    case Outcome::max_waiters: return "error_max_waiters";
    case Outcome::max_holds:
    case Outcome::max_client_holds: return "error_max_holds";
    case Outcome::limit_mismatch: return "error_limit_mismatch";
    case Outcome::mode_mismatch: return "error_mode_mismatch";
    case Outcome::permits_mismatch: return "error_permits_mismatch";
    case Outcome::storage: return "error_storage";
    case Outcome::not_leader: return "error_not_leader -";
    case Outcome::already_enqueued: return in_detail("error_already_enqueued");
    case Outcome::not_enqueued: return in_detail("error_not_enqueued");
    case Outcome::expired:
      // A renewal or a release of a key that is not held: the token may never have been granted, so
      // the reply names no lease.
      return command == Command::await_turn ? in_detail("error_lease_expired") : kStatusError;
    case Outcome::cancelled:
    case Outcome::taken_over:
    case Outcome::closed:
    case Outcome::not_holder:
    case Outcome::stale:
    case Outcome::fences_exhausted:
    case Outcome::invalid_key:
    case Outcome::invalid_holder:
    case Outcome::invalid_ttl:
    case Outcome::invalid_wait:
    case Outcome::invalid_limit:
    case Outcome::invalid_mode:
    case Outcome::invalid_permits:
    case Outcome::invalid_set:
    case Outcome::invalid_note: break;
  }
  return kStatusError;
}

void write_status(std::string& out, std::string_view status) {
  out += status;
  out += '\n';
}

void write_grant(std::string& out, Command command, const LineToken& token, Duration ttl) {
  const auto digits = token.format();
  out += status_of(command, Outcome::ok, false);
  out += ' ';
  out.append(digits.data(), digits.size());
  out += ' ';
  append_number(out, seconds_up(ttl));
  out += '\n';
}

void write_remaining(std::string& out, Duration remaining) { write_ok(out, seconds_up(remaining)); }

void write_count(std::string& out, std::uint64_t count) { write_ok(out, count); }

void write_lost(std::string& out, const LineToken& token, std::string_view cause,
                std::string_view key) {
  const auto digits = token.format();
  out += "lost ";
  out.append(digits.data(), digits.size());
  out += ' ';
  out += cause;
  out += ' ';
  out += key;
  out += '\n';
}

void write_call_answer(std::string& out, int status, std::string_view json) {
  while (json.ends_with('\n')) json.remove_suffix(1);
  out += "ok ";
  append_number(out, static_cast<std::uint64_t>(status));
  out += ' ';
  const std::size_t start = out.size();
  out += json.empty() ? "{}" : json;
  std::replace(out.begin() + static_cast<std::ptrdiff_t>(start), out.end(), '\n', ' ');
  out += '\n';
}

void write_event(std::string& out, std::string_view event, std::string_view json) {
  json.remove_prefix(1);
  out += "event {\"event\":\"";
  out += event;
  out += json == "}" ? "\"" : "\",";
  out += json;
  out += '\n';
}

void write_stats(std::string& out, std::string_view piece, bool begins, bool ends) {
  if (begins) out += "ok ";
  out += piece;
  if (ends) out += '\n';
}

}  // namespace lockd
