// The calls of HttpSession that take, keep and give back.
#include <algorithm>
#include <chrono>
#include <optional>

#include "base/json_text.h"
#include "server/milliseconds.h"
#include "server/session/http_session.h"

namespace lockd {
namespace {

constexpr std::int64_t kMsMax = 9'223'372'036'000;

Duration of_ms(std::int64_t ms) { return std::chrono::milliseconds(ms); }

// What an engine's refusal is called. Those that depend on the call come before this.
HttpError error_of(Outcome outcome) {
  const std::string detail(describe(outcome));
  switch (outcome) {
    case Outcome::held: return {409, "held", detail};
    case Outcome::timeout: return {409, "wait_timeout", detail};
    case Outcome::expired: return {409, "expired", detail};
    case Outcome::stale: return {409, "stale_token", detail};
    case Outcome::not_holder: return {409, "not_holder", detail};
    case Outcome::limit_mismatch: return {409, "limit_mismatch", detail};
    case Outcome::max_keys: return {429, "max_locks", detail};
    case Outcome::max_waiters: return {429, "max_waiters", detail};
    case Outcome::cancelled:
    case Outcome::closed: return {503, "draining", "the server is stopping"};
    case Outcome::not_leader: return {503, "not_leader", detail};
    case Outcome::storage:
    case Outcome::fences_exhausted: return {503, "storage", detail};
    default: return {400, "bad_request", detail};
  }
}

// The hold that a renewal or a release names. Views into `members`.
HoldId hold_in(RequestParams& params, Kind kind) {
  const std::string_view key = params.name("key");
  const std::string_view holder = params.name("holder");
  const std::int64_t token = params.number("token", 1, kFenceMax);
  return {.key = key, .holder = holder, .fence = static_cast<Fence>(token), .kind = kind};
}

}  // namespace

// When to come again, or where to.
std::string HttpSession::advice(const HttpError& error) const {
  if (error.status != 503) return {};
  if (error.code != "not_leader") return "Retry-After: 1\r\n";
  return "X-Dflockd-Leader: " + context_.leader_address() + "\r\nRetry-After: 1\r\n";
}

// The wall clock now, and what is left: no change of the clock since the grant is in it.
std::int64_t HttpSession::unix_ms_of(Time time) const {
  const Duration left = std::max(time - context_.engine.now(), Duration::zero());
  return context_.unix_ms() + whole_ms(left);
}

void HttpSession::acquire(Kind kind, std::string_view body, std::string& out) {
  RequestParams params = RequestParams::of_json(body);
  const std::string_view key = params.name("key");
  const std::string_view holder = params.name("holder");
  const auto ttl_ms = params.number_if_given("ttl_ms", 1, kMsMax);
  const auto wait_ms = params.number_if_given("wait_ms", 0, kMsMax);
  const std::int64_t limit = kind == Kind::lock ? 1 : params.number("limit", 1, kLimitMax);
  if (refuse_params(params, out)) return;

  Conflict conflict;
  const Answer answer =
      context_.batch.acquire({.key = key,
                              .holder = holder,
                              .ttl = ttl_ms ? of_ms(*ttl_ms) : context_.options.default_lease_ttl,
                              .wait = of_ms(wait_ms.value_or(0)),
                              .kind = kind,
                              .limit = static_cast<std::uint32_t>(limit)},
                             &context_.listener, id(), &conflict);
  if (answer.outcome == Outcome::ok) return answer_grant(key, holder, answer.grant, out);
  if (answer.outcome != Outcome::queued) {
    wait_.kind = kind;
    return refuse_acquire(answer.outcome, conflict, out);
  }
  state_ = State::waiting;
  wait_ = {answer.wait, kind, std::string(key), std::string(holder)};
}

void HttpSession::on_wait_done(const WaitResult& settled, std::string& out) {
  if (state_ != State::waiting) return;
  state_ = State::listening;
  if (settled.outcome == Outcome::ok) {
    return answer_grant(wait_.key, wait_.holder, settled.grant, out);
  }
  Conflict conflict;
  context_.batch.explain(wait_.kind, wait_.key, &conflict);
  refuse_acquire(settled.outcome, conflict, out);
}

void HttpSession::answer_grant(std::string_view key, std::string_view holder, const Grant& grant,
                               std::string& out) {
  JsonObject json;
  json.add("key", key);
  json.add("holder", holder);
  json.add("token", grant.fence);
  json.add("expires_at_unix_ms", unix_ms_of(grant.expires_at));
  answer(200, json.finish(), out);
}

// With who is in the way, if somebody still is.
void HttpSession::refuse_acquire(Outcome outcome, const Conflict& conflict, std::string& out) {
  const HttpError error = error_of(outcome);
  const bool names_others = outcome == Outcome::held || outcome == Outcome::timeout;
  JsonObject json;
  json.add("error", error.code);
  json.add("detail", error.detail);
  if (names_others && conflict.holders > 0) {
    if (wait_.kind == Kind::lock) {
      json.add("holder", conflict.holder);
      json.add("token", conflict.fence);
      json.add("expires_at_unix_ms", unix_ms_of(conflict.expires_at));
    } else {
      json.add("limit", conflict.limit);
      json.add("holders", conflict.holders);
    }
    json.add("waiters", conflict.waiters);
  }
  if (outcome == Outcome::limit_mismatch) json.add("limit", conflict.limit);
  answer(error.status, json.finish(), out, advice(error));
}

void HttpSession::renew(Kind kind, std::string_view body, std::string& out) {
  RequestParams params = RequestParams::of_json(body);
  const HoldId hold = hold_in(params, kind);
  const auto ttl_ms = params.number_if_given("ttl_ms", 1, kMsMax);
  if (refuse_params(params, out)) return;

  std::optional<Duration> ttl;
  if (ttl_ms) ttl = of_ms(*ttl_ms);
  const Answer answer = context_.batch.renew(hold, ttl);
  if (answer.outcome == Outcome::ok) {
    return answer_grant(hold.key, hold.holder.name(), answer.grant, out);
  }
  refuse_hold(answer.outcome, out);
}

void HttpSession::release(Kind kind, std::string_view body, std::string& out) {
  RequestParams params = RequestParams::of_json(body);
  const HoldId hold = hold_in(params, kind);
  if (refuse_params(params, out)) return;

  const Outcome outcome = context_.batch.release(hold);
  if (outcome != Outcome::ok) return refuse_hold(outcome, out);
  JsonObject json;
  json.add("key", hold.key);
  json.add("released", true);
  answer(200, json.finish(), out);
}

void HttpSession::refuse_hold(Outcome outcome, std::string& out) {
  const HttpError error = error_of(outcome);
  refuse(error, out, advice(error));
}

void HttpSession::fence(const Target& target, std::string& out) {
  RequestParams params = RequestParams::of_query(target.query);
  const std::string_view key = params.name("key");
  if (refuse_params(params, out)) return;
  // Whoever asks wants to know what was granted last: only the leader does.
  if (context_.engine.journal_state() == Journal::State::following) {
    return refuse_hold(Outcome::not_leader, out);
  }

  const FenceStatus status = context_.batch.fence(key);
  JsonObject json;
  json.add("key", key);
  json.add("held", status.held);
  json.add("token", status.fence);
  answer(200, json.finish(), out);
}

}  // namespace lockd
