#include "client/reply.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "client/request_lines.h"

namespace lockd::client {
namespace {

using std::chrono::seconds;

constexpr std::string_view kSignal = "sig ";
constexpr std::string_view kEvent = "event ";
constexpr std::string_view kLoss = "lost ";
constexpr std::size_t kFenceDigits = 16;
constexpr std::size_t kTokenSizeMax = 240;  // what fits a request's line, its lease behind it
constexpr std::size_t kShownMax = 80;

constexpr std::array<std::pair<std::string_view, Outcome>, 18> kWords{{
    {"ok", Outcome::ok},
    {"acquired", Outcome::ok},
    {"queued", Outcome::queued},
    {"timeout", Outcome::timeout},
    {"error_already_enqueued", Outcome::already_enqueued},
    {"error_not_enqueued", Outcome::not_enqueued},
    {"error_lease_expired", Outcome::lease_expired},
    {"error_max_locks", Outcome::max_locks},
    {"error_max_waiters", Outcome::max_waiters},
    {"error_max_holds", Outcome::max_holds},
    {"error_limit_mismatch", Outcome::limit_mismatch},
    {"error_mode_mismatch", Outcome::mode_mismatch},
    {"error_permits_mismatch", Outcome::permits_mismatch},
    {"error_storage", Outcome::storage},
    {"error_not_leader", Outcome::not_leader},
    {"error_denied", Outcome::denied},
    {"error_draining", Outcome::draining},
    {"error_auth", Outcome::unauthorized},
}};

Status garbled(std::string_view reply) {
  if (reply.starts_with("HTTP/")) return {Outcome::garbled, std::string(kIsHttpPort)};
  return {Outcome::garbled, "the server's answer makes no sense: " + shown(reply)};
}

// Takes the first word off `text`.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

// A word that can be sent back as it came.
bool is_token(std::string_view word) {
  return !word.empty() && word.size() <= kTokenSizeMax &&
         std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

template <class Number>
std::optional<Number> number_of(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return {};
  return number;
}

std::optional<seconds> seconds_of(std::string_view word) {
  const auto number = number_of<std::int64_t>(word);
  if (!number || *number < 0) return {};
  return std::min(seconds(*number), kSecondsMax);
}

}  // namespace

Status status_of(std::string_view reply) {
  std::string_view rest = reply;
  const std::string_view word = take_word(rest);
  for (const auto& [known, outcome] : kWords) {
    if (word != known) continue;
    Status status{outcome};
    if (outcome == Outcome::not_leader && rest != "-") status.leader = take_word(rest);
    return status;
  }
  if (word == "error") return {Outcome::refused};
  if (word.starts_with("error")) return {Outcome::refused, "the server says " + shown(reply)};
  return garbled(reply);
}

Result<LineGrant> grant_of(std::string_view reply, Lease asked) {
  if (Status status = status_of(reply); !status) return status;
  std::string_view rest = reply;
  take_word(rest);
  const std::string_view token = take_word(rest);
  const auto lease = seconds_of(take_word(rest));
  if (!is_token(token) || !lease || *lease < seconds(1)) {
    return garbled(reply);
  }
  return LineGrant{.token = std::string(token),
                   .fence = fence_of(token),
                   .lease = std::min(*lease, asked.value_or(kSecondsMax))};
}

Result<LineRenewal> renewal_of(std::string_view reply, Lease asked) {
  if (Status status = status_of(reply); !status) return status;
  std::string_view rest = reply;
  take_word(rest);
  const auto remaining = seconds_of(take_word(rest));
  if (!remaining) return garbled(reply);
  // A server that rounds down calls a lease of one second 0.
  const seconds rounded = std::max(*remaining, seconds(1));
  return LineRenewal{.remaining = std::min(rounded, asked.value_or(kSecondsMax))};
}

Result<std::uint64_t> count_of(std::string_view reply) {
  if (Status status = status_of(reply); !status) return status;
  std::string_view rest = reply;
  take_word(rest);
  const auto count = number_of<std::uint64_t>(take_word(rest));
  if (!count) return garbled(reply);
  return *count;
}

Result<std::string> stats_of(std::string_view reply) {
  if (Status status = status_of(reply); !status) return status;
  take_word(reply);
  if (!reply.starts_with('{')) return garbled(reply);
  return std::string(reply);
}

Result<ApiAnswer> api_answer_of(std::string_view reply) {
  if (Status status = status_of(reply); !status) return status;
  std::string_view rest = reply;
  take_word(rest);
  const auto status = number_of<unsigned>(take_word(rest));
  if (!status || *status < 100 || *status > 599 || rest.empty()) return garbled(reply);
  return ApiAnswer{*status, std::string(rest)};
}

bool is_signal(std::string_view line) noexcept { return line.starts_with(kSignal); }

bool is_event(std::string_view line) noexcept { return line.starts_with(kEvent); }

bool is_loss(std::string_view line) noexcept { return line.starts_with(kLoss); }

Signal signal_of(std::string_view push) {
  push.remove_prefix(kSignal.size());
  const std::string_view channel = take_word(push);
  return {std::string(channel), std::string(push)};
}

std::string event_of(std::string_view push) { return std::string(push.substr(kEvent.size())); }

Loss loss_of(std::string_view push) {
  push.remove_prefix(kLoss.size());
  Loss loss{.token = std::string(take_word(push))};
  const std::string_view cause = take_word(push);
  if (cause == "expired") loss.cause = Loss::Cause::expired;
  if (cause == "revoked") loss.cause = Loss::Cause::revoked;
  return loss;
}

Status status_of(const Loss& loss) {
  switch (loss.cause) {
    case Loss::Cause::expired: return {Outcome::lost, "the lease ran out"};
    case Loss::Cause::revoked: return {Outcome::lost, "an admin has ended it"};
    case Loss::Cause::unknown: break;
  }
  return {Outcome::lost, "the server says that it is held no more"};
}

std::string shown(std::string_view text) {
  std::string safe(text.substr(0, kShownMax));
  std::replace_if(
      safe.begin(), safe.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return "\"" + safe + (text.size() > kShownMax ? "...\"" : "\"");
}

Fence fence_of(std::string_view token) noexcept {
  Fence fence = 0;
  if (token.size() < kFenceDigits) return 0;
  const auto [end, error] =
      std::from_chars(token.data(), token.data() + kFenceDigits, fence, /*base=*/16);
  return error == std::errc() && end == token.data() + kFenceDigits ? fence : 0;
}

}  // namespace lockd::client
