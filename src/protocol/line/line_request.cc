#include "protocol/line/line_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <system_error>

#include "base/pattern.h"
#include "base/text.h"

namespace lockd {
namespace {

// What an argument consists of, in this order. From the ttl on all may be left out; permits only
// follow a ttl.
struct Fields {
  bool token = false;
  bool wait = false;
  bool limit = false;
  bool ttl = false;
  bool permits = false;
  bool mode = false;    // the word `shared`
  bool secret = false;  // as=<16 hex digits>

  constexpr std::size_t required() const {
    return std::size_t{token} + std::size_t{wait} + std::size_t{limit};
  }
  // Without the words that are taken from the end before.
  constexpr std::size_t most() const {
    return required() + std::size_t{ttl} + std::size_t{permits};
  }
};

struct Rule {
  std::string_view name;
  Command command;
  Kind kind = Kind::lock;
  Fields fields{};
};

// Searched from the front: the busiest come first.
constexpr Rule kRules[] = {
    {"l", Command::acquire, Kind::lock, {.wait = true, .ttl = true, .mode = true, .secret = true}},
    {"r", Command::release, Kind::lock, {.token = true}},
    {"n", Command::renew, Kind::lock, {.token = true, .ttl = true}},
    {"e", Command::enqueue, Kind::lock, {.ttl = true, .mode = true, .secret = true}},
    {"w", Command::await_turn, Kind::lock, {.wait = true}},
    {"sl",
     Command::acquire,
     Kind::semaphore,
     {.wait = true, .limit = true, .ttl = true, .permits = true, .secret = true}},
    {"sr", Command::release, Kind::semaphore, {.token = true}},
    {"sn", Command::renew, Kind::semaphore, {.token = true, .ttl = true}},
    {"se",
     Command::enqueue,
     Kind::semaphore,
     {.limit = true, .ttl = true, .permits = true, .secret = true}},
    {"sw", Command::await_turn, Kind::semaphore, {.wait = true}},
    {"signal", Command::signal},
    {"ping", Command::ping},
    {"listen", Command::listen},
    {"unlisten", Command::unlisten},
    {"stats", Command::stats},
    {"barrier", Command::barrier},
    {"client", Command::client},
    {"api", Command::api},
    {"auth", Command::auth},
    {"peer", Command::peer},
};

const Rule* find_rule(std::string_view name) {
  for (const Rule& rule : kRules) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// The words of an argument, up to one more than any command takes.
struct Words {
  std::array<std::string_view, 6> word;
  std::size_t count = 0;

  std::string_view last() const { return count == 0 ? std::string_view() : word[count - 1]; }
};

Words split(std::string_view argument) {
  Words words;
  for (argument = trim(argument); !argument.empty() && words.count < words.word.size();) {
    std::size_t size = 0;
    while (size < argument.size() && !is_blank(argument[size])) ++size;
    words.word[words.count++] = argument.substr(0, size);
    argument = trim(argument.substr(size));
  }
  return words;
}

// Decimal with an optional sign, within 64 bits, and nothing else.
bool parse_integer(std::string_view text, std::int64_t* value) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return false;  // from_chars would read on
  }
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stopped == end;
}

// What no Duration can hold is refused as if it did not fit an integer: that is what is wrong with
// it, and it must not reach a conversion that would wrap.
bool parse_seconds(std::string_view text, std::int64_t* seconds) {
  constexpr std::int64_t kSecondsMax =
      std::chrono::duration_cast<std::chrono::seconds>(kDurationMax).count();
  static_assert(kSecondsMax == 9'223'372'036);
  return parse_integer(text, seconds) && *seconds <= kSecondsMax;
}

// Takes the client's own secret from the end, if it is there. False when it is malformed.
bool take_secret(Words& words, LineRequest& request) {
  constexpr std::string_view kPrefix = "as=";
  constexpr std::size_t kDigits = 16;
  std::string_view last = words.last();
  if (!last.starts_with(kPrefix)) return true;
  last.remove_prefix(kPrefix.size());
  const bool is_lower = last.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (last.size() != kDigits || !is_lower) return false;
  std::uint64_t secret = 0;
  std::from_chars(last.data(), last.data() + last.size(), secret, 16);
  request.secret = secret;
  --words.count;
  return true;
}

// Takes the mode from the end, if it is named.
void take_mode(Words& words, LineRequest& request) {
  if (words.last() != "shared") return;
  request.mode = Mode::shared;
  --words.count;
}

Violation parse_fields(const Words& words, const Fields& fields, LineRequest& request) {
  // A range is looked at only when every number is one; until then these hold what passes.
  std::int64_t wait = 0;
  std::int64_t limit = 1;
  std::int64_t ttl = 1;
  std::int64_t permits = 1;
  const bool names_ttl = words.count > fields.required();
  const bool names_permits = words.count > fields.required() + 1;
  const std::string_view* next = words.word.data();
  if (fields.token) request.token = LineToken::parse(*next++);
  if (fields.wait && !parse_seconds(*next++, &wait)) return Violation::not_an_integer;
  if (fields.limit && !parse_integer(*next++, &limit)) return Violation::not_an_integer;
  if (names_ttl && !parse_seconds(*next++, &ttl)) return Violation::not_an_integer;
  if (names_permits && !parse_integer(*next, &permits)) return Violation::not_an_integer;

  if (wait < 0) return Violation::negative_timeout;
  if (limit < 1 || limit > kLimitMax) return Violation::bad_limit;
  if (ttl < 1) return Violation::bad_lease;
  if (permits < 1 || permits > limit) return Violation::bad_limit;
  request.wait = std::chrono::seconds(wait);
  request.limit = static_cast<std::uint32_t>(limit);
  request.permits = static_cast<std::uint32_t>(permits);
  if (names_ttl) request.ttl = std::chrono::seconds(ttl);
  return Violation::none;
}

Violation parse_lock_request(const RequestLines& lines, const Fields& fields,
                             LineRequest& request) {
  if (!is_name(lines.key)) return Violation::bad_key;
  request.key = lines.key;
  Words words = split(lines.argument);
  if (fields.secret && !take_secret(words, request)) return Violation::bad_arguments;
  if (fields.mode) take_mode(words, request);
  if (fields.token && words.count == 0) return Violation::empty_token;
  if (words.count < fields.required() || words.count > fields.most()) {
    return Violation::bad_arguments;
  }
  return parse_fields(words, fields, request);
}

Violation parse_subscription(const RequestLines& lines, LineRequest& request) {
  if (!is_pattern(lines.key)) return Violation::bad_key;
  request.key = lines.key;
  request.text = trim(lines.argument);
  // A group is a name like any other: the statistics show it, and must stay JSON.
  return is_plain_text(request.text) ? Violation::none : Violation::bad_key;
}

Violation parse_signal(const RequestLines& lines, LineRequest& request) {
  if (!is_channel(lines.key)) return Violation::bad_key;
  request.key = lines.key;
  request.text = lines.argument;
  if (!is_payload(request.key, request.text)) return Violation::bad_arguments;
  return Violation::none;
}

Violation parse_client(const RequestLines& lines, LineRequest& request) {
  if (!is_name(lines.key)) return Violation::bad_key;
  request.key = lines.key;
  request.text = trim(lines.argument);
  const bool is_note = request.text.size() <= kNoteSizeMax && is_plain_text(request.text);
  return is_note ? Violation::none : Violation::bad_arguments;
}

// Whether there is such a call is no matter of the protocol.
Violation parse_call(const RequestLines& lines, LineRequest& request) {
  if (!is_name(lines.key)) return Violation::bad_key;
  request.key = lines.key;
  request.text = trim(lines.argument);
  return Violation::none;
}

Violation parse_peer(const RequestLines& lines, LineRequest& request) {
  if (!is_name(lines.key)) return Violation::bad_key;
  request.key = lines.key;
  request.text = trim(lines.argument);
  return request.text.empty() ? Violation::bad_arguments : Violation::none;
}

Violation parse_lines(const RequestLines& lines, const Rule& rule, LineRequest& request) {
  switch (rule.command) {
    case Command::auth: request.text = trim(lines.argument); return Violation::none;
    case Command::stats:
    case Command::ping:
    case Command::barrier: return Violation::none;
    case Command::listen:
    case Command::unlisten: return parse_subscription(lines, request);
    case Command::signal: return parse_signal(lines, request);
    case Command::client: return parse_client(lines, request);
    case Command::peer: return parse_peer(lines, request);
    case Command::api: return parse_call(lines, request);
    case Command::acquire:
    case Command::release:
    case Command::renew:
    case Command::enqueue:
    case Command::await_turn: break;
  }
  return parse_lock_request(lines, rule.fields, request);
}

// A request line, such as "POST / HTTP/1.1", or the header that each HTTP/1.1 request has.
bool is_http(std::string_view command) {
  constexpr std::string_view kHost = "host:";
  constexpr std::string_view kVersion = " HTTP/1.";
  const std::string_view start = command.substr(0, kHost.size());
  const auto is_same = [](char sent, char lower) { return (sent | 0x20) == lower; };
  if (std::equal(start.begin(), start.end(), kHost.begin(), kHost.end(), is_same)) return true;
  return command.size() > kVersion.size() &&
         command.substr(command.size() - kVersion.size() - 1).starts_with(kVersion);
}

}  // namespace

std::string_view describe(Violation violation) noexcept {
  switch (violation) {
    case Violation::none: return "none";
    case Violation::unknown_command: return "unknown command";
    case Violation::not_an_integer: return "not an integer";
    case Violation::bad_key: return "bad key, channel, pattern or group";
    case Violation::negative_timeout: return "negative timeout";
    case Violation::empty_token: return "no token";
    case Violation::bad_arguments: return "wrong arguments";
    case Violation::bad_lease: return "lease of zero or less";
    case Violation::read_timeout: return "silent for too long";
    case Violation::disconnected: return "disconnected in the middle of a request";
    case Violation::line_too_long: return "line too long";
    case Violation::bad_limit: return "bad limit or permits";
    case Violation::http_request: return "an HTTP request";
  }
  return "";
}

// One object from here to the caller: to copy what was just written, field by field, would stall.
ParsedRequest parse_request(const RequestLines& lines, Phase phase) noexcept {
  ParsedRequest parsed{.violation = Violation::unknown_command};
  const Rule* rule = find_rule(lines.command);
  if (rule == nullptr) {
    if (is_http(lines.command)) parsed.violation = Violation::http_request;
    return parsed;
  }
  // A server proves itself by a secret of its own.
  const Phase wrong = rule->command == Command::auth ? Phase::open : Phase::before_auth;
  if (phase == wrong && rule->command != Command::peer) return parsed;
  parsed.request.command = rule->command;
  parsed.request.kind = rule->kind;
  parsed.violation = parse_lines(lines, *rule, parsed.request);
  return parsed;
}

}  // namespace lockd
