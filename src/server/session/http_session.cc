#include "server/session/http_session.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "base/json_text.h"
#include "base/pattern.h"
#include "base/text.h"
#include "protocol/http/routes.h"
#include "server/reports/report.h"
#include "server/session/session_host.h"

namespace lockd {
namespace {

constexpr std::string_view kBearer = "Bearer ";
// A connection is closed with the answer to this one.
constexpr std::uint8_t kFailedAttemptsMax = 10;

// A short request may have a long answer: those of one read could come to hundreds of times what
// was read.
constexpr std::size_t kOutputPerTurn = 256 * 1024;

bool needs_no_proof(HttpCall call) {
  return call == HttpCall::live || call == HttpCall::ready || call == HttpCall::leader;
}

bool takes_or_waits(HttpCall call) {
  return call == HttpCall::acquire || call == HttpCall::semaphore_acquire ||
         call == HttpCall::listen || call == HttpCall::events;
}

// The name or address in a Host, without its port and brackets.
std::string_view host_name(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, std::min(host.find(']'), host.size()) - 1);
  return host.substr(0, host.find(':'));
}

// A name that no page elsewhere can have pointed at this machine: else a browser could be made to
// take this server for that page's own.
bool is_own_name(std::string_view host) {
  const std::string name(host_name(host));
  constexpr std::string_view kUnder = ".localhost";
  const std::size_t rest = name.size() - std::min(name.size(), kUnder.size());
  if (boost::beast::iequals(name, kUnder.substr(1))) return true;
  if (boost::beast::iequals(std::string_view(name).substr(rest), kUnder)) return true;
  boost::system::error_code error;
  boost::asio::ip::make_address(name, error);
  return !error;
}

// Less than a head may have.
constexpr std::uint64_t kSmallBodyMax = 4096;

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

// The hold that a renewal or a release names. Views into `members`.
HoldId hold_in(RequestParams& params, Kind kind) {
  const std::string_view key = params.name("key");
  const std::string_view holder = params.name("holder");
  const std::int64_t token = params.number("token", 1, kFenceMax);
  return {.key = key, .holder = holder, .fence = static_cast<Fence>(token), .kind = kind};
}

constexpr std::string_view kStreamType = "text/event-stream";
constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kPageFields =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\n";

constexpr std::int64_t kKeysPerPageMax = 1000;
constexpr std::int64_t kKeysPerPage = 100;

// A line client's payload may be any bytes; JSON may not.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

std::size_t HttpSession::take_in(std::string_view unread, std::string& out) {
  std::size_t taken = 0;
  const std::size_t enough = out.size() + kOutputPerTurn;
  while (taken < unread.size() && out.size() < enough && may_take_more(taken)) {
    if (incoming_ == nullptr) {
      incoming_ = std::make_unique<Incoming>();
      ++requests_;
    }
    const std::size_t more = incoming_->parser.take_in(unread.substr(taken));
    taken += more;
    go_on(taken == unread.size(), out);
    if (incoming_ != nullptr && more == 0) break;
  }
  return taken;
}

std::size_t HttpSession::buffered() const {
  return ServerSession::buffered() + (incoming_ == nullptr ? 0 : incoming_->parser.buffered());
}

// As far as what has come of the request allows; `is_all`: nothing else has come.
void HttpSession::go_on(bool is_all, std::string& out) {
  RequestParser& parser = incoming_->parser;
  if (parser.error()) {
    exchange_ = {};
    refuse(parser.error(), out);
    return incoming_.reset();
  }
  if (parser.has_head() && !incoming_->is_admitted) {
    if (!admit_head(*incoming_, out)) return incoming_.reset();
    incoming_->is_admitted = true;
    if (is_all && parser.wants_continue()) write_continue(out);
  }
  if (!parser.is_complete()) return;
  const std::unique_ptr<Incoming> incoming = std::move(incoming_);
  execute(*incoming, out);
}

// Whether the request may go on; else it is answered. Where its body would begin the next request
// is then not looked for.
bool HttpSession::admit_head(Incoming& incoming, std::string& out) {
  const HttpRequest& request = incoming.parser.request();
  exchange_ = {.keep_alive = request.keep_alive && incoming.parser.is_complete(),
               .http_1_0 = request.http_1_0,
               .with_body = request.method != HttpMethod::head};
  if (!parse_target(request.target, &incoming.target)) {
    refuse({400, "bad_request", "a percent sign without two hex digits"}, out);
    return false;
  }
  incoming.match = match_route(request.method, incoming.target.path);
  if (incoming.match.route != nullptr) {
    exchange_.call = incoming.match.route->call;
  } else if (find_web_file(incoming.target.path) != nullptr) {
    exchange_.call = HttpCall::page;
  }
  if (!admit(request, exchange_.call, out) || !find_call(incoming, out) ||
      !has_room_for_body(incoming, out)) {
    return false;
  }
  exchange_.keep_alive = request.keep_alive;
  return true;
}

bool HttpSession::find_call(Incoming& incoming, std::string& out) {
  const HttpMethod method = incoming.parser.request().method;
  if (exchange_.call == HttpCall::none) {
    refuse({404, "not_found", "there is nothing here"}, out);
    return false;
  }
  if (method == HttpMethod::options) return true;
  const bool is_page = exchange_.call == HttpCall::page;
  const bool gets = method == HttpMethod::get || method == HttpMethod::head;
  if (is_page ? gets : incoming.match.method_fits) return true;
  const std::string allowed(is_page ? "GET, HEAD, OPTIONS"
                                    : allowed_methods(*incoming.match.route));
  refuse({405, "method_not_allowed", "allowed: " + allowed}, out, "Allow: " + allowed + "\r\n");
  return false;
}

// A body that no call looks at needs none. One that is small is taken whatever others have: leases
// are renewed by those.
bool HttpSession::has_room_for_body(Incoming& incoming, std::string& out) {
  if (incoming.parser.is_complete()) return true;
  if (incoming.parser.request().method != HttpMethod::post) {
    incoming.parser.drop_body();
    return true;
  }
  if (context_.buffers == nullptr || !context_.buffers->is_exceeded()) return true;
  if (incoming.parser.announced_size() <= kSmallBodyMax) return true;
  refuse({503, "busy", "connections have too much in buffers: see --max-buffer-memory"}, out,
         "Retry-After: 1\r\n");
  return false;
}

void HttpSession::execute(const Incoming& incoming, std::string& out) {
  const HttpRequest& request = incoming.parser.request();
  if (request.method == HttpMethod::options) return answer_options(incoming.match.route, out);
  if (exchange_.call == HttpCall::page) return answer_page(incoming.target.path, out);
  if (is_too_late()) return refuse_draining(out);  // that may have begun since the head
  call(incoming.target, incoming.match.rest, request, out);
}

// Whether the request may go on; else it is answered.
bool HttpSession::admit(const HttpRequest& request, HttpCall call, std::string& out) {
  if (needs_no_proof(call)) return true;
  if (is_foreign_) {
    refuse({403, "protected_mode",
            "only loopback is served; to serve others name a host in --http-addr or set a token"},
           out);
    return false;
  }
  if (!is_allowed_host(request.host)) {
    const std::string detail =
        "without a token Host must be localhost or an address: see --http-allow-host";
    const HttpError protects{403, "protected_mode", detail};
    const HttpError checks{403, "foreign_host", detail};
    refuse(context_.options.http_is_protected() ? protects : checks, out);
    return false;
  }
  // A browser need not name the origin of what it loads for a page. Ours may be linked to.
  const bool is_foreign_page = request.has_origin ? !is_allowed_origin(request)
                                                  : request.is_cross_site && call != HttpCall::page;
  if (is_foreign_page) {
    refuse({403, "foreign_origin", "this origin is not allowed: see --http-allow-origin"}, out);
    return false;
  }
  // The page holds no secret, and is what asks for the token. A browser asks for leave without one.
  if (call == HttpCall::page || request.method == HttpMethod::options) return true;
  if (!knows_token(request.authorization)) {
    fail_attempt();
    return false;
  }
  has_shown_token_ = true;
  if (is_too_late()) {
    refuse_draining(out);
    return false;
  }
  return true;
}

bool HttpSession::is_too_late() const {
  if (needs_no_proof(exchange_.call)) return false;
  return context_.hands_over() || (context_.draining && takes_or_waits(exchange_.call));
}

void HttpSession::refuse_draining(std::string& out) {
  refuse({503, "draining", "the server is stopping"}, out, "Retry-After: 1\r\n");
}

// While no proof is asked for, being on this machine is one, and so a browser on it must not be led
// here by another name.
bool HttpSession::is_allowed_host(std::string_view host) const {
  const Options& options = context_.options;
  if (options.demands_proof() || !(peer_.at_loopback || options.http_is_protected())) return true;
  if (host.empty() || is_own_name(host)) return true;  // HTTP/1.0, which no browser speaks
  const auto& allowed = options.http_allow_host;
  return std::any_of(allowed.begin(), allowed.end(), [&](const std::string& name) {
    return name == "*" || boost::beast::iequals(name, host_name(host));
  });
}

// The page's own requests are; so are those of origins that were named.
bool HttpSession::is_allowed_origin(const HttpRequest& request) {
  const std::string_view scheme = context_.options.tls_cert.empty() ? "http://" : "https://";
  if (boost::beast::iequals(request.origin, std::string(scheme) + request.host)) return true;
  for (const std::string& allowed : context_.options.http_allow_origin) {
    if (allowed != "*" && !boost::beast::iequals(allowed, request.origin)) continue;
    exchange_.allowed_origin = request.origin;
    return true;
  }
  return false;
}

bool HttpSession::knows_token(std::string_view authorization) const {
  const bool is_bearer = boost::beast::iequals(authorization.substr(0, kBearer.size()), kBearer);
  const std::string_view shown = is_bearer ? authorization.substr(kBearer.size()) : "";
  return context_.tokens.accept(shown);
}

// It hears of it after a pause. What it sends behind that stays unread, or is dropped if the answer
// is its last.
void HttpSession::fail_attempt() {
  context_.stats.http_auth_failures.add();
  if (++failed_attempts_ == kFailedAttemptsMax) exchange_.keep_alive = false;
  if (!exchange_.keep_alive) fate_ = Fate::refused;
  pause_ = Pause::wrong_secret;
  state_ = State::paused;
}

void HttpSession::end_pause(std::string& out) {
  if (state_ != State::paused) return;
  pause_ = Pause::none;
  state_ = State::listening;
  refuse({401, "unauthorized", "a bearer token is needed"}, out, "WWW-Authenticate: Bearer\r\n");
}

void HttpSession::answer_options(const Route* route, std::string& out) {
  const std::string_view allowed =
      route == nullptr ? "GET, HEAD, OPTIONS" : allowed_methods(*route);
  std::string fields = "Allow: " + std::string(allowed) + "\r\n";
  if (!exchange_.allowed_origin.empty()) {
    fields += "Access-Control-Allow-Methods: " + std::string(allowed) + "\r\n";
    fields += "Access-Control-Allow-Headers: Authorization, Content-Type\r\n";
    fields += "Access-Control-Max-Age: 600\r\n";
  }
  answer(204, "", out, fields, "");
}

void HttpSession::call(const Target& target, std::string_view channel, const HttpRequest& request,
                       std::string& out) {
  // What takes its members from the body takes none from the query.
  if (request.method == HttpMethod::post &&
      refuse_params(RequestParams::of_query(target.query), out)) {
    return;
  }
  switch (exchange_.call) {
    case HttpCall::acquire: return acquire(Kind::lock, request.body, out);
    case HttpCall::renew: return renew(Kind::lock, request.body, out);
    case HttpCall::release: return release(Kind::lock, request.body, out);
    case HttpCall::fence: return fence(target, out);
    case HttpCall::semaphore_acquire: return acquire(Kind::semaphore, request.body, out);
    case HttpCall::semaphore_renew: return renew(Kind::semaphore, request.body, out);
    case HttpCall::semaphore_release: return release(Kind::semaphore, request.body, out);
    case HttpCall::publish: return publish(channel, request.body, out);
    case HttpCall::listen: return listen(target, out);
    case HttpCall::locks: return list_keys(target, out);
    case HttpCall::events: return watch_events(target, out);
    case HttpCall::stats: return ask({.what = ReportRequest::What::stats});
    case HttpCall::overview: return ask({.what = ReportRequest::What::overview});
    case HttpCall::metrics:
      if (context_.options.metrics) return ask({.what = ReportRequest::What::metrics});
      return refuse({404, "not_found", "metrics are off: see --metrics"}, out);
    case HttpCall::live:
    case HttpCall::ready:
    case HttpCall::leader: return answer_health(out);
    case HttpCall::openapi: return answer_page(target.path, out);
    case HttpCall::page:
    case HttpCall::none: return;
  }
}

// Holds.

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
                             &context_.host.listener(), id(), &conflict);
  if (answer.outcome == Outcome::ok) return answer_grant(key, holder, answer.grant, out);
  if (answer.outcome != Outcome::queued) {
    wait_.kind = kind;
    return refuse_acquire(answer.outcome, conflict, out);
  }
  state_ = State::waiting;
  wait_ = {answer.wait, kind, std::string(key), std::string(holder)};
}

void HttpSession::on_wait_done(const WaitResult& result, std::string& out) {
  if (state_ != State::waiting) return;
  state_ = State::listening;
  if (result.outcome == Outcome::ok) {
    return answer_grant(wait_.key, wait_.holder, result.grant, out);
  }
  Conflict conflict;
  context_.batch.explain(wait_.kind, wait_.key, &conflict);
  refuse_acquire(result.outcome, conflict, out);
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

// Signals.

void HttpSession::publish(std::string_view channel, std::string_view body, std::string& out) {
  RequestParams params = RequestParams::of_json(body);
  const std::string_view payload = params.text("payload");
  if (!is_channel(channel)) params.refuse("the channel", "must be a name without wildcards");
  if (!is_payload(channel, payload)) {
    params.refuse("payload", "must not be blank, nor have line feeds, nor be too long for a line");
  }
  if (refuse_params(params, out)) return;

  const auto reached = context_.host.publish(*this, channel, payload);
  if (reached) return answer_published(*reached, out);
  state_ = State::publishing;
}

void HttpSession::on_published(std::size_t reached, std::string& out) {
  if (state_ != State::publishing) return;
  state_ = State::listening;
  answer_published(reached, out);
}

void HttpSession::answer_published(std::size_t reached, std::string& out) {
  JsonObject json;
  json.add("delivered", reached);
  answer(200, json.finish(), out);
}

void HttpSession::listen(const Target& target, std::string& out) {
  RequestParams params = RequestParams::of_query(target.query);
  const std::string_view pattern = params.text("pattern");
  const std::string_view group = params.text_if_given("group").value_or("");
  if (!is_pattern(pattern)) {
    params.refuse("pattern", "must be a name in which * and > are whole tokens, > the last");
  }
  if (!group.empty() && !is_name(group)) {
    params.refuse("group", "must be 1 to 256 bytes of UTF-8 without control characters");
  }
  if (refuse_params(params, out)) return;
  if (!exchange_.with_body) return answer(200, "", out, {}, kStreamType);
  if (!context_.hub.listen(subscriber(), pattern, group)) {
    return refuse({429, "max_subscriptions", "the server has as many as it keeps"}, out);
  }
  listens_ = true;
  begin_stream(out);
}

bool HttpSession::signalled(const Signal& signal, std::string& out) {
  if (state_ != State::streaming) return true;
  JsonObject json;
  json.add("channel", signal.channel());
  json.add("payload", as_utf8(signal.payload(), kReplacement));
  write_stream_event(out, !exchange_.http_1_0, "sig", json.finish());
  return true;
}

// Keys.

void HttpSession::list_keys(const Target& target, std::string& out) {
  RequestParams params = RequestParams::of_query(target.query);
  KeyQuery query;
  query.prefix = params.text_if_given("prefix").value_or("");
  query.contains = params.text_if_given("contains").value_or("");
  query.key = params.text_if_given("key").value_or("");
  query.holder = params.text_if_given("holder").value_or("");
  query.client_id =
      static_cast<SessionId>(params.number_if_given("client_id", 1, kSessionIdMax).value_or(0));
  query.keys_max = static_cast<std::uint32_t>(
      params.number_if_given("limit", 1, kKeysPerPageMax).value_or(kKeysPerPage));
  query.with_idle = params.truth("idle");
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
  ask({.what = ReportRequest::What::keys, .keys = std::move(query)});
}

void HttpSession::watch_events(const Target& target, std::string& out) {
  RequestParams params = RequestParams::of_query(target.query);
  const std::string_view prefix = params.text_if_given("prefix").value_or("");
  if (refuse_params(params, out)) return;
  if (!exchange_.with_body) return answer(200, "", out, {}, kStreamType);
  if (!context_.host.watch_events(id(), prefix)) {
    return refuse({429, "max_watchers", "as many streams are open as --max-watchers allows"}, out);
  }
  begin_stream(out);
}

void HttpSession::on_key_event(const KeyEventJson& event, std::uint64_t missed, std::string& out) {
  if (state_ != State::streaming) return;
  if (missed > 0) {
    JsonObject json;
    json.add("count", missed);
    write_stream_event(out, !exchange_.http_1_0, "missed", json.finish());
  }
  write_stream_event(out, !exchange_.http_1_0, event.event, event.data);
}

// Streams. The head is sent at once: it says that whatever happens from now on will be told.

void HttpSession::begin_stream(std::string& out) {
  exchange_.keep_alive = false;
  const std::string fields = usual_fields(kNotKept);
  write_stream_head(out, head(200, kStreamType, fields));
  fate_ = Fate::open;  // it closes when the client does, or when the server stops
  state_ = State::streaming;
}

void HttpSession::ping(std::string& out) {
  if (state_ == State::streaming) write_stream_ping(out, !exchange_.http_1_0);
}

// Reports.

void HttpSession::ask(ReportRequest report) {
  state_ = State::reporting;
  report.refusable =
      report.what == ReportRequest::What::keys || report.what == ReportRequest::What::stats;
  context_.host.ask(id(), std::move(report));
}

// With its length, if it is all there.
void HttpSession::report(const ReportPiece& piece, std::string& out) {
  const bool ends = piece.rest == nullptr;
  if (state_ == State::reporting && piece.was_refused) {
    state_ = State::listening;
    return refuse({503, "busy", "too many listings wait: ask again in a second"}, out,
                  "Retry-After: 1\r\n");
  }
  if (state_ == State::reporting && ends) {
    state_ = State::listening;
    return answer(200, piece.text, out, {}, report_type());
  }
  if (state_ == State::reporting) begin_report(out);
  if (state_ != State::in_mid_report) return;
  write_stream_piece(out, !exchange_.http_1_0, piece.text);
  if (!ends) return;
  write_stream_end(out, !exchange_.http_1_0);
  state_ = State::listening;
  if (context_.draining) fate_ = Fate::closes;
}

void HttpSession::begin_report(std::string& out) {
  if (exchange_.http_1_0) exchange_.keep_alive = false;
  const std::string fields = reply_fields(200);
  write_stream_head(out, head(200, report_type(), fields));
  state_ = exchange_.with_body ? State::in_mid_report : State::listening;
}

std::string_view HttpSession::report_type() const {
  return exchange_.call == HttpCall::metrics ? kMetricsType : kJsonType;
}

void HttpSession::answer_health(std::string& out) {
  std::string_view problem;
  if (exchange_.call == HttpCall::ready) {
    problem = why_not_ready(context_.draining, context_.engine);
  } else if (exchange_.call == HttpCall::leader) {
    const bool follows = context_.engine.journal_state() == Journal::State::following;
    problem = follows ? "not_leader" : why_not_ready(context_.draining, context_.engine);
    // As with everything a leader says: not before it is certain to be one.
    if (problem.empty() && context_.cluster != nullptr) context_.batch.barrier();
  }
  JsonObject json;
  json.add("status", problem.empty() ? "ok" : problem);
  answer(problem.empty() ? 200 : 503, json.finish(), out);
}

void HttpSession::answer_page(std::string_view path, std::string& out) {
  const WebFile* file = find_web_file(path);
  answer(200, file->content, out, kPageFields, file->type);
}

// Replies.

ReplyHead HttpSession::head(int status, std::string_view type, std::string_view fields) {
  if (context_.draining) exchange_.keep_alive = false;  // also when that began after the request
  if (!exchange_.keep_alive) fate_ = Fate::closes;
  context_.stats.count_http(exchange_.call, status);
  return {.status = status,
          .content_type = type,
          .fields = fields,
          .keep_alive = exchange_.keep_alive,
          .http_1_0 = exchange_.http_1_0};
}

std::string HttpSession::usual_fields(std::string_view cache_control) const {
  std::string fields = "Date: " + context_.date + "\r\nCache-Control: ";
  fields += cache_control;
  fields += "\r\n";
  if (!exchange_.allowed_origin.empty()) {
    fields += "Access-Control-Allow-Origin: " + exchange_.allowed_origin + "\r\nVary: Origin\r\n";
  }
  return fields;
}

std::string HttpSession::reply_fields(int status) const {
  const bool is_file = exchange_.call == HttpCall::page || exchange_.call == HttpCall::openapi;
  return usual_fields(is_file && status == 200 ? kAskedForAgain : kNotKept) +
         "X-Content-Type-Options: nosniff\r\n";
}

void HttpSession::answer(int status, std::string_view body, std::string& out,
                         std::string_view fields, std::string_view type) {
  const std::string all = reply_fields(status) + std::string(fields);
  write_reply(out, head(status, type, all), body, exchange_.with_body);
}

void HttpSession::refuse(const HttpError& error, std::string& out, std::string_view fields) {
  JsonObject json;
  json.add("error", error.code);
  json.add("detail", error.detail);
  answer(error.status, json.finish(), out, fields);
}

bool HttpSession::refuse_params(const RequestParams& params, std::string& out) {
  const HttpError error = params.error();
  if (error) refuse(error, out);
  return static_cast<bool>(error);
}

// Ends.

void HttpSession::time_out(bool half, std::string& out) {
  if (half) {
    exchange_ = {};
    refuse({408, "request_timeout", "the request was not whole in time"}, out);
  }
  fate_ = Fate::closes;
}

// One that says nothing is closed at once: whoever has something to renew or release comes again.
void HttpSession::drain(std::string& out) {
  switch (state_) {
    case State::waiting: context_.batch.cancel(wait_.id); return;
    case State::reporting:
    case State::in_mid_report:
    case State::publishing:
    case State::paused: return;
    case State::streaming:
      write_stream_end(out, !exchange_.http_1_0);
      state_ = State::listening;
      fate_ = Fate::closes;
      return;
    case State::listening:
      if (incoming_ == nullptr) fate_ = Fate::closes;
      return;
  }
}

bool HttpSession::end(bool, int*) {
  incoming_.reset();
  if (listens_) context_.hub.drop(subscriber());
  const bool is_settled = state_ == State::waiting && !context_.batch.cancel(wait_.id);
  if (is_settled) context_.host.abandon(*this);
  return true;
}

}  // namespace lockd
