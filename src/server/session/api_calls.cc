#include "server/session/api_calls.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/json_text.h"
#include "base/pattern.h"
#include "base/text.h"
#include "server/reports/client_json.h"
#include "server/reports/report.h"
#include "server/session/hold_params.h"
#include "server/session/session_host.h"

namespace lockd {
namespace {

Duration of_ms(std::int64_t ms) { return std::chrono::milliseconds(ms); }

constexpr std::int64_t kKeysPerPageMax = 1000;
constexpr std::int64_t kKeysPerPage = 100;
constexpr std::int64_t kEventsMax = 1000;
constexpr std::int64_t kEventsUsual = 100;

}  // namespace

bool ApiCalls::takes_or_waits(HttpCall call) {
  return call == HttpCall::acquire || call == HttpCall::semaphore_acquire || is_stream(call);
}

bool ApiCalls::is_too_late(const SessionContext& context, HttpCall call) {
  return context.draining && takes_or_waits(call);
}

void ApiCalls::execute(HttpCall call, std::string_view channel, RequestParams& params,
                       std::string& out) {
  switch (call) {
    case HttpCall::acquire: return acquire(Kind::lock, params, out);
    case HttpCall::renew: return renew(Kind::lock, params, out);
    case HttpCall::release: return release(Kind::lock, params, out);
    case HttpCall::fence: return fence(params, out);
    case HttpCall::semaphore_acquire: return acquire(Kind::semaphore, params, out);
    case HttpCall::semaphore_renew: return renew(Kind::semaphore, params, out);
    case HttpCall::semaphore_release: return release(Kind::semaphore, params, out);
    case HttpCall::publish: return publish(channel, params, out);
    case HttpCall::listen: return listen(params, out);
    case HttpCall::locks: return list_keys(params, out);
    case HttpCall::events: return watch_events(params, out);
    case HttpCall::clients: return list_clients(params, out);
    case HttpCall::admin_release: return revoke(params, out);
    case HttpCall::admin_disconnect: return disconnect(params, out);
    case HttpCall::admin_resize: return resize(params, out);
    case HttpCall::cluster: return inspect_cluster(params, out);
    case HttpCall::cluster_snapshot: return begin_snapshot(params, out);
    case HttpCall::cluster_transfer: return transfer(params, out);
    case HttpCall::history: return tell_history(params, out);
    case HttpCall::stats: return ask({.what = ReportRequest::What::stats, .shows_clients = true});
    case HttpCall::overview: return ask({.what = ReportRequest::What::overview});
    case HttpCall::metrics:
      if (context_.options.metrics) return ask({.what = ReportRequest::What::metrics});
      return refuse({404, "not_found", "metrics are off: see --metrics"}, out);
    case HttpCall::live:
    case HttpCall::ready:
    case HttpCall::leader: return answer_health(call, out);
    case HttpCall::whoami:
      return replies_.answer(200, whoami_json(*session_.permit(), session_.peer()), out);
    case HttpCall::openapi:
      return replies_.answer(200, find_web_file("/v1/openapi.json")->content, out);
    case HttpCall::page:
    case HttpCall::none: return;
  }
}

void ApiCalls::refuse(const HttpError& error, std::string& out, std::string_view fields) {
  replies_.answer(error.status, refusal(error).finish(), out, fields);
}

void ApiCalls::refuse_draining(std::string& out) {
  refuse({503, "draining", "the server is stopping"}, out, "Retry-After: 1\r\n");
}

void ApiCalls::refuse_without_leader(const HttpError& error, std::string& out) {
  refuse(error, out, advice(error));
}

void ApiCalls::refuse_report(std::string& out) {
  refuse({503, "busy", "too many listings wait: ask again in a second"}, out, "Retry-After: 1\r\n");
}

bool ApiCalls::refuse_params(const RequestParams& params, std::string& out) {
  const HttpError error = params.error();
  if (error) refuse(error, out);
  return static_cast<bool>(error);
}

bool ApiCalls::refuse_unpermitted(const Route& route, std::string& out) {
  const Permit& permit = *session_.permit();
  if (!permit.may(route.right)) {
    refuse({403, "denied", permit.lacks(route.right)}, out);
    return true;
  }
  if (route.scope == Scope::keys || !permit.is_confined()) return false;
  refuse({403, "denied", permit.is_confined_to() + "; this is about everything"}, out);
  return true;
}

bool ApiCalls::refuse_name(std::string_view name, std::string& out) {
  const Permit& permit = *session_.permit();
  if (permit.may_touch(name)) return false;
  refuse({403, "denied", permit.is_confined_to()}, out);
  return true;
}

bool ApiCalls::refuse_pattern(std::string_view pattern, std::string& out) {
  const Permit& permit = *session_.permit();
  if (permit.may_listen(pattern)) return false;
  refuse({403, "denied", permit.is_confined_to()}, out);
  return true;
}

// Holds.

// What an engine's refusal is called. Those that depend on the call come before this.
HttpError ApiCalls::error_of(Outcome outcome) {
  const std::string detail(describe(outcome));
  switch (outcome) {
    case Outcome::held: return {409, "held", detail};
    case Outcome::timeout: return {409, "wait_timeout", detail};
    case Outcome::expired: return {409, "expired", detail};
    case Outcome::stale: return {409, "stale_token", detail};
    case Outcome::not_holder: return {409, "not_holder", detail};
    case Outcome::limit_mismatch: return {409, "limit_mismatch", detail};
    case Outcome::mode_mismatch: return {409, "mode_mismatch", detail};
    case Outcome::permits_mismatch: return {409, "permits_mismatch", detail};
    case Outcome::max_keys: return {429, "max_locks", detail + ": see --max-locks"};
    case Outcome::max_waiters: return {429, "max_waiters", detail + ": see --max-waiters"};
    case Outcome::max_holds: return {429, "max_holds", detail + ": see --max-holds"};
    case Outcome::max_client_holds:
      return {429, "max_holds", detail + ": see --max-holds-per-client"};
    case Outcome::cancelled:
    case Outcome::closed: return {503, "draining", "the server is stopping"};
    case Outcome::not_leader: return {503, "not_leader", detail};
    case Outcome::storage:
    case Outcome::fences_exhausted: return {503, "storage", detail};
    default: return {400, "bad_request", detail};
  }
}

// When to come again, or where to.
std::string ApiCalls::advice(const HttpError& error) const {
  if (error.status != 503) return {};
  if (error.code != "not_leader") return "Retry-After: 1\r\n";
  return "X-Lockd-Leader: " + context_.gate.leader_address() +
         "\r\nX-Lockd-Leader-Http: " + context_.gate.leader_http_address() +
         "\r\nRetry-After: 1\r\n";
}

// What is left, to be added to the wall clock as it is now: no change of it since the grant counts.
std::int64_t ApiCalls::ms_until(Time time) const {
  return whole_ms(std::max(time - context_.engine.now(), Duration::zero()));
}

void ApiCalls::acquire(Kind kind, RequestParams& params, std::string& out) {
  if (kind == Kind::lock && NamedKeys::are_in(params)) return acquire_all(params, out);
  const SetItem item = item_in(params, kind);
  const Terms terms = terms_in(params);
  if (refuse_params(params, out) || refuse_name(item.key, out)) return;
  session_.log().about(item.key);
  Conflict conflict;
  const Answer answer = context_.batch.acquire({.key = item.key,
                                                .holder = terms.holder,
                                                .ttl = lease(terms.ttl_ms),
                                                .wait = terms.wait,
                                                .kind = kind,
                                                .limit = item.limit,
                                                .note = terms.note,
                                                .peer = session_.peer().address,
                                                .mode = item.mode,
                                                .permits = item.permits},
                                               &context_.host.listener(), session_.id(), &conflict);
  if (answer.outcome == Outcome::ok) {
    return answer_grant(item.key, terms.holder, answer.grant, out);
  }
  if (answer.outcome != Outcome::queued) {
    return refuse_acquire(kind, item.key, answer.outcome, conflict, out);
  }
  state_ = State::waiting;
  session_.set_wait({answer.wait, kind, std::string(item.key), std::string(terms.holder)});
}

void ApiCalls::on_wait_done(const WaitResult& result, std::string& out) {
  if (state_ != State::waiting) return;
  state_ = State::idle;
  const ServerSession::Wait& wait = session_.wait();
  if (wait.all != nullptr) return end_wait_for_all(result, out);
  if (result.outcome == Outcome::ok) {
    return answer_grant(wait.key, wait.holder, result.grant, out);
  }
  Conflict conflict;
  context_.batch.explain(wait.kind, wait.key, &conflict);
  refuse_acquire(wait.kind, wait.key, result.outcome, conflict, out);
}

void ApiCalls::answer_grant(std::string_view key, std::string_view holder, const Grant& grant,
                            std::string& out) {
  JsonObject json;
  json.add("key", key);
  answer_grant(std::move(json), holder, grant, out);
}

void ApiCalls::answer_grant(JsonObject json, std::string_view holder, const Grant& grant,
                            std::string& out) {
  session_.log().about(grant.fence);
  const std::int64_t left_ms = ms_until(grant.expires_at);
  json.add("holder", holder);
  json.add("token", grant.fence);
  json.add("ttl_ms", whole_ms(grant.ttl));
  json.add("expires_in_ms", left_ms);
  json.add("expires_at_unix_ms", context_.unix_ms() + left_ms);
  replies_.answer(200, json.finish(), out);
}

Duration ApiCalls::lease(std::optional<std::int64_t> ttl_ms) const {
  return ttl_ms ? of_ms(*ttl_ms) : context_.options.default_lease_ttl;
}

JsonObject ApiCalls::refusal(const HttpError& error) {
  session_.log().comes_to(error.code);
  JsonObject json;
  json.add("error", error.code);
  json.add("detail", error.detail);
  return json;
}

void ApiCalls::add_held_by(JsonObject& json, Kind kind, std::string_view key) {
  const auto hold = context_.batch.last_to_expire(kind, key);
  if (!hold) return;
  static const ClientIdentity unnamed;
  const ClientIdentity& client = hold->client == nullptr ? unnamed : *hold->client;
  const std::int64_t now_unix_ms = context_.unix_ms();
  JsonObject held_by;
  held_by.add("holder", holder_text(*hold, context_.clients));
  held_by.add_if_known("client", client.name);
  if (session_.permit()->may(Right::read)) {
    held_by.add_if_known("peer", peer_of(client, context_.clients.find(hold->session)));
    held_by.add_if_known("note", client.note);
  }
  held_by.add("fence", hold->fence);
  if (kind == Kind::lock) held_by.add("mode", mode_name(hold->mode));
  held_by.add("since_unix_ms", now_unix_ms - whole_ms(hold->held));
  held_by.add("expires_at_unix_ms", now_unix_ms + whole_ms(hold->remaining));
  json.add_json("held_by", held_by.finish());
}

// A key that is free is refused to a request that does not wait while the first request of its
// queue waits for other keys too.
void ApiCalls::refuse_acquire(Kind kind, std::string_view key, Outcome outcome,
                              const Conflict& conflict, std::string& out) {
  HttpError error = error_of(outcome);
  if (outcome == Outcome::held && conflict.holders == 0) error.detail = kWaitedFor;
  const bool names_others = outcome == Outcome::held || outcome == Outcome::timeout;
  JsonObject json = refusal(error);
  if (error.status == 409) add_held_by(json, kind, key);
  if (names_others && conflict.holders > 0) {
    if (kind == Kind::semaphore) {
      json.add("limit", conflict.limit);
      json.add("permits", conflict.permits);
    }
    json.add("holders", conflict.holders);
    json.add("waiters", conflict.waiters);
  } else if (names_others && conflict.waiters > 0) {
    json.add("waiters", conflict.waiters);
  }
  if (outcome == Outcome::limit_mismatch && conflict.limit > 0) json.add("limit", conflict.limit);
  replies_.answer(error.status, json.finish(), out, advice(error));
}

void ApiCalls::renew(Kind kind, RequestParams& params, std::string& out) {
  if (kind == Kind::lock && NamedKeys::are_in(params)) return renew_all(params, out);
  const HoldId hold = hold_in(params, kind);
  const auto ttl_ms = params.number_if_given("ttl_ms", 1, kMsMax);
  if (refuse_params(params, out) || refuse_name(hold.key, out)) return;
  session_.log().about(hold);

  std::optional<Duration> ttl;
  if (ttl_ms) ttl = of_ms(*ttl_ms);
  const Answer answer = context_.batch.renew(hold, ttl);
  if (answer.outcome == Outcome::ok) {
    return answer_grant(hold.key, hold.holder.name(), answer.grant, out);
  }
  refuse_hold(answer.outcome, out);
}

void ApiCalls::release(Kind kind, RequestParams& params, std::string& out) {
  if (kind == Kind::lock && NamedKeys::are_in(params)) return release_all(params, out);
  const HoldId hold = hold_in(params, kind);
  if (refuse_params(params, out) || refuse_name(hold.key, out)) return;
  session_.log().about(hold);

  const Outcome outcome = context_.batch.release(hold);
  if (outcome != Outcome::ok) return refuse_hold(outcome, out);
  JsonObject json;
  json.add("key", hold.key);
  json.add("released", true);
  replies_.answer(200, json.finish(), out);
}

void ApiCalls::refuse_hold(Outcome outcome, std::string& out) {
  const HttpError error = error_of(outcome);
  refuse(error, out, advice(error));
}

bool ApiCalls::rests_on_leading(std::string& out) {
  if (context_.gate.follows()) {
    refuse_hold(Outcome::not_leader, out);
    return false;
  }
  context_.gate.confirm(context_.batch);
  return true;
}

void ApiCalls::fence(RequestParams& params, std::string& out) {
  const std::string_view key = params.name("key");
  if (refuse_params(params, out) || refuse_name(key, out)) return;
  session_.log().about(key);
  // Whoever asks wants to know what was granted last: only the leader does.
  if (!rests_on_leading(out)) return;

  const FenceStatus status = context_.batch.fence(key);
  JsonObject json;
  json.add("key", key);
  json.add("held", status.held);
  json.add("token", status.fence);
  replies_.answer(200, json.finish(), out);
}

// Signals.

void ApiCalls::publish(std::string_view channel, RequestParams& params, std::string& out) {
  const std::string_view payload = params.text("payload");
  if (!is_channel(channel))
    params.refuse("the channel", "must be a name without wildcards, of at most 32 tokens");
  if (!is_payload(channel, payload)) {
    params.refuse("payload", "must not be blank, nor have line feeds, nor be too long for a line");
  }
  if (refuse_params(params, out) || refuse_name(channel, out)) return;
  session_.log().about(channel);

  const auto reached = context_.host.publish(session_, channel, payload);
  if (reached) return answer_published(*reached, out);
  state_ = State::publishing;
}

void ApiCalls::on_published(std::size_t reached, std::string& out) {
  if (state_ != State::publishing) return;
  state_ = State::idle;
  answer_published(reached, out);
}

void ApiCalls::answer_published(std::size_t reached, std::string& out) {
  JsonObject json;
  json.add("delivered", reached);
  replies_.answer(200, json.finish(), out);
}

void ApiCalls::listen(RequestParams& params, std::string& out) {
  const std::string_view pattern = params.text("pattern");
  const std::string_view group = params.text_if_given("group").value_or("");
  if (!is_pattern(pattern)) {
    params.refuse(
        "pattern",
        "must be a name of at most 32 tokens, in which * and > are whole tokens, > the last");
  }
  if (!group.empty() && !is_name(group)) {
    params.refuse("group", "must be 1 to 256 bytes of UTF-8 without control characters");
  }
  if (refuse_params(params, out) || refuse_pattern(pattern, out)) return;
  if (!replies_.may_stream(out)) return;
  if (!context_.hub.listen(session_.subscriber(), pattern, group)) {
    return refuse({429, "max_subscriptions",
                   "this connection has as many as --max-subscriptions allows, or all together "
                   "have a million, with the nodes of their patterns"},
                  out);
  }
  listens_ = true;
  streams_ = true;
  replies_.begin_stream(out);
}

void ApiCalls::signalled(const Signal& signal, std::string& out) {
  if (!streams_) return;
  JsonObject json;
  json.add("channel", signal.channel());
  json.add("payload", as_utf8(signal.payload()));
  replies_.push("sig", json.finish(), out);
}

// A follower answers for itself, for what the cluster is, and for its own clients. Lists and
// history are the leader's, if it is reached, unless `local` is true.
bool ApiCalls::is_for_leader(const SessionContext& context, HttpCall call, RequestParams& params) {
  switch (call) {
    case HttpCall::live:
    case HttpCall::ready:
    case HttpCall::leader:
    case HttpCall::metrics:
    case HttpCall::cluster:
    case HttpCall::whoami:
    case HttpCall::openapi:
    case HttpCall::page:
    case HttpCall::none: return false;
    case HttpCall::admin_disconnect: {
      const auto id = params.number_if_given("client_id", 1, kSessionIdMax).value_or(0);
      return !context.clients.status(static_cast<SessionId>(id));
    }
    case HttpCall::locks:
    case HttpCall::clients:
    case HttpCall::overview:
    case HttpCall::stats:
    case HttpCall::history: return context.gate.reaches_leader() && !params.truth("local");
    default: return true;
  }
}

// Keys.

void ApiCalls::list_keys(RequestParams& params, std::string& out) {
  KeyQuery query;
  query.prefix = params.text_if_given("prefix").value_or("");
  query.contains = params.text_if_given("contains").value_or("");
  query.key = params.name_if_given("key");
  query.holder = params.name_if_given("holder");
  query.client_id =
      static_cast<SessionId>(params.number_if_given("client_id", 1, kSessionIdMax).value_or(0));
  const auto limit = params.number_if_given("limit", 1, kKeysPerPageMax);
  query.keys_max = static_cast<std::uint32_t>(limit.value_or(kKeysPerPage));
  if (limit) query.entries_max = static_cast<std::size_t>(*limit);
  query.with_idle = params.truth("idle");
  const bool certain = params.truth("certain");
  params.truth("local");  // see is_for_leader()
  if (const auto order = params.text_if_given("order")) {
    query.order = parse_key_order(*order).value_or(KeyOrder::none);
    if (query.order == KeyOrder::none) {
      params.refuse("order", "must be waiters, longest_wait or longest_hold");
    }
  }
  if (const auto after = params.text_if_given("after")) {
    if (!parse_place(*after, &query.from)) {
      params.refuse("after", "must be the `next` of an earlier page");
    }
  }
  if (refuse_params(params, out)) return;
  if (!query.key.empty() && refuse_name(query.key, out)) return;
  if (certain && !rests_on_leading(out)) return;
  ask({.what = ReportRequest::What::keys, .keys = std::move(query)});
}

void ApiCalls::list_clients(RequestParams& params, std::string& out) {
  ClientQuery query;
  params.truth("local");
  query.prefix = params.text_if_given("prefix").value_or("");
  query.clients_max = static_cast<std::uint32_t>(
      params.number_if_given("limit", 1, kKeysPerPageMax).value_or(kKeysPerPage));
  if (const auto after = params.text_if_given("after")) {
    const auto id = parse_whole(*after, 1, kSessionIdMax);
    if (!id) params.refuse("after", "must be the `next` of an earlier page");
    query.after = id.value_or(0);
  }
  if (refuse_params(params, out)) return;
  ask({.what = ReportRequest::What::clients, .clients = std::move(query)});
}

void ApiCalls::watch_events(RequestParams& params, std::string& out) {
  const std::string_view prefix = params.text_if_given("prefix").value_or("");
  if (refuse_params(params, out)) return;
  // A follower has heard of no queue: those are the leader's.
  if (!replies_.may_stream(out)) return;
  if (!context_.host.watch_events(session_.id(), prefix)) {
    return refuse({429, "max_watchers", "as many watch as may: see --max-watchers"}, out);
  }
  streams_ = true;
  replies_.begin_stream(out);
}

void ApiCalls::tell_history(RequestParams& params, std::string& out) {
  HistoryRequest request;
  HistoryQuery& query = request.of_keys;
  params.truth("local");
  query.key = params.name_if_given("key");
  query.holder = params.name_if_given("holder");
  query.client = params.name_if_given("client");
  query.session =
      static_cast<SessionId>(params.number_if_given("client_id", 1, kSessionIdMax).value_or(0));
  request.since_unix_ms = params.number_if_given("since_unix_ms", 0, kMsMax).value_or(0);
  query.events_max = static_cast<std::size_t>(
      params.number_if_given("limit", 1, kEventsMax).value_or(kEventsUsual));
  if (const auto event = params.text_if_given("event")) {
    request.event = *event;
    query.type = key_event_type(request.event);
    if (!query.type && !server_event_type(request.event)) {
      params.refuse("event", "must be the name of an event, such as granted or expired");
    }
  }
  if (refuse_params(params, out)) return;
  if (context_.options.history == 0) {
    return refuse({404, "not_found", "no history is kept: see --history"}, out);
  }
  ask({.what = ReportRequest::What::history, .history = std::move(request)});
}

void ApiCalls::on_key_event(const KeyEventJson& event, std::uint64_t missed, std::string& out) {
  if (!streams_) return;
  if (missed > 0) {
    JsonObject json;
    json.add("count", missed);
    replies_.push("missed", json.finish(), out);
  }
  replies_.push(event.event, event.data, out);
}

void ApiCalls::ask(ReportRequest report) {
  state_ = State::reporting;
  report.refusable =
      report.what == ReportRequest::What::keys || report.what == ReportRequest::What::stats ||
      report.what == ReportRequest::What::clients || report.what == ReportRequest::What::history;
  context_.host.ask(session_.id(), std::move(report));
}

bool ApiCalls::end_report() {
  if (state_ != State::reporting) return false;
  state_ = State::idle;
  return true;
}

void ApiCalls::answer_health(HttpCall call, std::string& out) {
  std::string_view problem;
  if (call == HttpCall::ready) {
    problem = why_not_ready(context_.draining, context_.engine, context_.cluster);
  } else if (call == HttpCall::leader) {
    problem = context_.gate.follows()
                  ? "not_leader"
                  : why_not_ready(context_.draining, context_.engine, context_.cluster);
    // More than with what else a leader says: not before it has proved that it is one still.
    if (problem.empty()) context_.gate.confirm(context_.batch);
  }
  JsonObject json;
  json.add("status", problem.empty() ? "ok" : problem);
  replies_.answer(problem.empty() ? 200 : 503, json.finish(), out);
}

// Ends.

void ApiCalls::drain() {
  if (state_ == State::waiting) context_.batch.cancel(session_.wait().id);
}

void ApiCalls::end() {
  const bool is_settled = state_ == State::waiting && !context_.batch.cancel(session_.wait().id);
  if (is_settled) context_.host.abandon(session_);
  state_ = State::idle;
}

}  // namespace lockd
