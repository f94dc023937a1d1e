#include "client/claim.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/secret.h"
#include "base/text.h"
#include "client/identity.h"
#include "client/json_view.h"

namespace lockd::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kWaitMsMax = 9'223'372'036'000;

// "ann@build-7:4711#9f86d081884c7d65": people see whose it is.
std::string unique_holder(const ConnectOptions& options) {
  std::array<char, 18> unique{};
  std::snprintf(unique.data(), unique.size(), "#%016" PRIx64, TokenSource().next());
  const std::string client = options.name ? *options.name : default_name();
  return as_utf8(client.substr(0, kNameSizeMax - (unique.size() - 1)), "") + unique.data();
}

// Who says nothing of itself says nothing here either.
std::string note_of(const ConnectOptions& options) {
  if (options.name && options.name->empty()) return {};
  return options.note ? *options.note : default_note();
}

std::vector<std::string> keys_of(const KeyItems& items) {
  std::vector<std::string> keys;
  for (const KeyItem& item : items) keys.emplace_back(item.key);
  return keys;
}

// What no server takes of one key, none takes of several.
Status check(const LockRequest& request) {
  if (request.keys.empty() || request.keys.size() > kKeysPerSetMax) {
    return {Outcome::invalid, "a set is 1 to " + std::to_string(kKeysPerSetMax) + " keys"};
  }
  for (const KeyItem& item : request.keys) {
    const auto lines = acquire_lines({.key = item.key,
                                      .lease = request.lease.value_or(seconds(1)),
                                      .kind = item.kind,
                                      .limit = item.limit,
                                      .mode = item.mode,
                                      .permits = item.permits});
    if (!lines) return lines;
  }
  const std::size_t twin = request.keys.find_duplicate();
  if (twin == request.keys.size()) return {};
  return {Outcome::invalid, std::string(request.keys[twin].key) + " is in the set twice"};
}

std::string call(std::string_view path, JsonObject body) {
  const std::string json = body.finish();
  return *api_lines({.method = "POST", .path = path, .json = json});
}

std::uint64_t ms_of(seconds time) { return static_cast<std::uint64_t>(milliseconds(time).count()); }

// --- answers ---

Status garbled_answer(std::string_view reply) {
  return {Outcome::garbled, "the server's answer makes no sense: " + shown(reply)};
}

// The object that an answer brings, whatever it says. It refers to the reply.
std::optional<JsonView> object_in(std::string_view reply) {
  const auto said = JsonView::parse(reply.substr(std::min(reply.find('{'), reply.size())));
  return said && said->is_object() ? said : std::nullopt;
}

// A text of the server's, fit for a terminal.
std::optional<std::string> text_in(const JsonView& said, std::string_view member) {
  const auto text = said.member(member).text();
  return text ? std::optional(fit_for_server(*text)) : std::nullopt;
}

Outcome outcome_of(std::string_view error) {
  for (const char* one : {"held", "wait_timeout"}) {
    if (error == one) return Outcome::timeout;
  }
  // The request was checked before it was sent: the server does not know such ones.
  if (error == "bad_request" || error == "not_found") return Outcome::unsupported;
  if (error == "unauthorized") return Outcome::unauthorized;
  return status_of("error_" + std::string(error)).outcome;
}

// One of the keys is held no more, or by somebody else.
bool says_not_held(std::string_view error) {
  return error == "expired" || error == "stale_token" || error == "not_holder";
}

// "seat-13 is held by cart-7", of each key that is in the way, for as many as people read.
std::string in_the_way(const JsonView& said) {
  constexpr std::size_t kNamedMax = 3;
  const auto conflicts = said.member("conflicts").elements();
  std::string text;
  for (std::size_t i = 0; i < std::min(conflicts.size(), kNamedMax); ++i) {
    const auto holder = text_in(conflicts[i].member("held_by"), "holder");
    text += (i == 0 ? "" : ", ") + text_in(conflicts[i], "key").value_or("?") +
            (holder ? " is held by " + *holder : " is waited for");
  }
  if (conflicts.size() <= kNamedMax) return text;
  return text + " and " + std::to_string(conflicts.size() - kNamedMax) + " more";
}

}  // namespace

std::string Claim::name() const {
  std::string all;
  for (const std::string& key : keys_) all += (all.empty() ? "" : ", ") + key;
  return all;
}

NamedItems named_items(const KeyItems& items) {
  const bool plain = std::ranges::all_of(items, [](const KeyItem& item) {
    return item.kind == Kind::lock && item.mode == Mode::exclusive;
  });
  JsonArray list;
  for (const KeyItem& item : items) {
    if (plain) {
      append_json_string(list.next(), item.key);
      continue;
    }
    JsonObject json;
    json.add("key", item.key);
    json.add("kind", item.kind == Kind::lock ? "lock" : "semaphore");
    if (item.mode == Mode::shared) json.add("mode", "shared");
    if (item.kind == Kind::semaphore) json.add("limit", item.limit);
    if (item.permits > 1) json.add("permits", item.permits);
    list.add_json(json.finish());
  }
  return {plain ? "keys" : "items", list.finish()};
}

Status api_status_of(std::string_view reply) {
  const auto answer = api_answer_of(reply);
  if (answer.outcome == Outcome::refused) {
    return {Outcome::unsupported, "the server is too old for several keys"};
  }
  if (!answer) return answer;
  const auto said = object_in(reply);
  if (!said) return garbled_answer(reply);
  if (answer->status == 200) {
    // A release tells so of those that were lost before it.
    return said->member("not_held").elements().empty() ? Status{} : Status{Outcome::refused};
  }
  const auto error = said->member("error").text();
  if (!error) return garbled_answer(reply);
  if (says_not_held(*error)) return {Outcome::refused};
  Status status{outcome_of(*error), text_in(*said, "detail").value_or("")};
  if (status.outcome == Outcome::timeout) status.detail = in_the_way(*said);
  return status;
}

Result<std::shared_ptr<const SetClaim>> SetClaim::make(const LockRequest& request,
                                                       const ConnectOptions& options) {
  if (Status bad = check(request); !bad) return bad;
  return std::shared_ptr<const SetClaim>(new SetClaim(request, options));
}

SetClaim::SetClaim(const LockRequest& request, const ConnectOptions& options)
    : Claim(keys_of(request.keys), request.keys.front().kind),
      items_(named_items(request.keys)),
      holder_(unique_holder(options)),
      note_(note_of(options)),
      lease_(request.lease) {}

JsonObject SetClaim::named() const {
  JsonObject json;
  json.add_json(items_.member, items_.json);
  json.add("holder", holder_);
  return json;
}

std::string SetClaim::acquire_lines(Duration wait) const {
  JsonObject body = named();
  if (lease_) body.add("ttl_ms", ms_of(*lease_));
  body.add_if_known("note", note_);
  const auto wait_ms = static_cast<std::uint64_t>(std::chrono::ceil<milliseconds>(wait).count());
  if (wait_ms > 0) body.add("wait_ms", std::min(wait_ms, kWaitMsMax));
  return call("/v1/acquire", std::move(body));
}

std::string SetClaim::renew_lines(const LineGrant& grant) const {
  JsonObject body = named();
  body.add("token", grant.fence);
  body.add("ttl_ms", ms_of(grant.lease));
  return call("/v1/renew", std::move(body));
}

std::string SetClaim::release_lines(const LineGrant& grant) const {
  JsonObject body = named();
  body.add("token", grant.fence);
  return call("/v1/release", std::move(body));
}

Result<LineGrant> SetClaim::grant_of(std::string_view reply) const {
  if (Status status = api_status_of(reply); !status) return status;
  const JsonView said = *object_in(reply);
  const Fence fence = said.member("token").number().value_or(0);
  const auto lease =
      seconds(std::min(said.member("ttl_ms").number().value_or(0), kWaitMsMax) / 1000);
  if (fence == 0 || lease < seconds(1)) return garbled_answer(reply);
  std::array<char, 17> token{};
  std::snprintf(token.data(), token.size(), "%016" PRIx64, fence);
  return LineGrant{
      .token = token.data(), .fence = fence, .lease = std::min(lease, lease_.value_or(lease))};
}

Result<LineRenewal> SetClaim::renewal_of(std::string_view reply, seconds lease) const {
  auto grant = grant_of(reply);
  if (!grant) return Status(std::move(grant));
  return LineRenewal{.remaining = std::min(grant->lease, lease)};
}

std::string SetClaim::gone_in(std::string_view reply) const {
  const auto said = object_in(reply);
  if (!said) return name();
  const auto not_held = said->member("not_held").elements();
  const JsonView told = not_held.empty() ? *said : not_held.front();
  const auto key = told.is_object() ? told.member("key").text() : told.text();
  return key && !key->empty() ? fit_for_server(*key) : name();
}

}  // namespace lockd::client
