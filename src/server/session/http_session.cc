#include "server/session/http_session.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>
#include <cstdint>
#include <utility>

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

// The characters of host names and of IPv4 addresses.
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

bool needs_no_proof(HttpCall call) {
  return call == HttpCall::live || call == HttpCall::ready || call == HttpCall::leader;
}

bool is_ipv6(std::string_view text) {
  boost::system::error_code error;
  boost::asio::ip::make_address_v6(text, error);
  return !error;
}

// The name or address in a Host, without its port and brackets. Empty when any part of the field is
// malformed: a name that is only its beginning may be another machine's.
std::string_view host_name(std::string_view host) {
  const bool has_brackets = host.starts_with('[');
  if (has_brackets) host.remove_prefix(1);
  const std::size_t end = std::min(host.find(has_brackets ? ']' : ':'), host.size());
  const std::string_view name = host.substr(0, end);
  host.remove_prefix(end);
  if (has_brackets) {
    if (host.empty() || !is_ipv6(name)) return {};
    host.remove_prefix(1);
  } else if (name.find_first_not_of(kNameCharacters) != std::string_view::npos) {
    return {};
  }
  const bool is_good = host.empty() || host == ":" ||
                       (host.front() == ':' && parse_whole(host.substr(1), 0, UINT16_MAX));
  return is_good ? name : "";
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

// A path may be any bytes; the log is UTF-8.

// As the log begins the name of a call.
std::string name_of(HttpMethod method) {
  switch (method) {
    case HttpMethod::get: return "GET ";
    case HttpMethod::head: return "HEAD ";
    case HttpMethod::post: return "POST ";
    case HttpMethod::options: return "OPTIONS ";
    case HttpMethod::other: break;
  }
  return "OTHER ";
}

constexpr std::string_view kStreamType = "text/event-stream";
constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kPageFields =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\n";

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
    if (logs(LogLevel::debug)) begin_log("unknown");
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
    if (logs(LogLevel::debug)) begin_log("unknown");
    refuse({400, "bad_request", "a percent sign without two hex digits"}, out);
    return false;
  }
  if (logs(LogLevel::debug)) begin_log(name_of(request.method) + incoming.target.path);
  incoming.match = match_route(request.method, incoming.target.path);
  if (incoming.match.route != nullptr) {
    exchange_.call = incoming.match.route->call;
  } else if (find_web_file(incoming.target.path) != nullptr) {
    exchange_.call = HttpCall::page;
  }
  if (!admit(request, exchange_.call, out) || !find_call(incoming, out) ||
      !is_permitted(incoming, out) || !has_room_for_body(incoming, out)) {
    return false;
  }
  exchange_.keep_alive = request.keep_alive;
  return true;
}

// The query is left out.
void HttpSession::begin_log(std::string_view request) {
  log_.begin(as_utf8(request), {}, context_.engine.now());
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
  // What may have changed since the head.
  if (is_too_late()) return calls_.refuse_draining(out);
  if (!renew_permit()) {
    fate_ = Fate::closes;
    return;
  }
  if (!is_permitted(incoming, out) || hands_over(incoming)) return;
  call(incoming, out);
}

// Whether the request is the leader's to answer: then it is passed on as a message of its own, with
// what is needed to execute it and to write the reply, and no field that concerns this connection.
bool HttpSession::hands_over(const Incoming& incoming) {
  if (peer_.is_forwarded() || !context_.gate.follows()) return false;
  const HttpRequest& request = incoming.parser.request();
  const bool posts = request.method == HttpMethod::post;
  RequestParams params =
      posts ? RequestParams::of_json(request.body) : RequestParams::of_query(incoming.target.query);
  if (!ApiCalls::is_for_leader(context_, exchange_.call, params)) return false;
  successor_ = context_.gate.proxy(context_, *this,
                                   {.http = write_request(request, exchange_.allowed_origin),
                                    .is_loopback = peer_.is_loopback && !request.is_forwarded});
  if (successor_ == nullptr) return false;
  state_ = State::passed;
  return true;
}

// It has its reply, or none comes.
void HttpSession::resume(const HttpError& error, std::string& out) {
  state_ = State::listening;
  if (error) return calls_.refuse_without_leader(error, out);
  if (!exchange_.keep_alive || context_.draining) fate_ = Fate::closes;
  log_end("passed on");
}

// Whether the request may go on; else it is answered.
bool HttpSession::admit(const HttpRequest& request, HttpCall call, std::string& out) {
  if (needs_no_proof(call)) return true;
  if (peer_.is_forwarded()) {  // the server that it is connected to has let it in
    exchange_.allowed_origin = request.origin;
    return true;
  }
  if (is_foreign_) {
    refuse({403, "protected_mode",
            "only loopback is served; to serve others name a host in --http-addr or set "
            "--auth-token-file"},
           out);
    return false;
  }
  if (!is_allowed_host(request.host)) {
    const std::string detail =
        "without an auth token, Host must be localhost or an address: see --http-allow-host";
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
  if (!find_permit(request)) {
    fail_attempt();
    return false;
  }
  has_shown_token_ = true;
  if (is_too_late()) {
    calls_.refuse_draining(out);
    return false;
  }
  return true;
}

bool HttpSession::is_too_late() const {
  if (needs_no_proof(exchange_.call)) return false;
  return context_.hands_over() || ApiCalls::is_too_late(context_, exchange_.call);
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

void HttpSession::on_certificate(const CertificateNames& certificate) {
  by_certificate_ = context_.access.find(certificate, wall_time());
  if (by_certificate_ == nullptr) return;
  set_permit(by_certificate_);
  has_shown_token_ = true;
}

// By the auth token, where one is shown or needed; else by its certificate. False: it is not let
// in.
bool HttpSession::find_permit(const HttpRequest& request) {
  const Access& access = context_.access;
  const std::string_view authorization = request.authorization;
  const bool by_certificate = authorization.empty() && by_certificate_ != nullptr;
  if (!by_certificate && !access.asks_for_token()) {
    set_permit(access.permit_for(peer_, request.is_forwarded));
    return true;
  }
  const bool is_bearer = boost::beast::iequals(authorization.substr(0, kBearer.size()), kBearer);
  const std::string_view shown = is_bearer ? authorization.substr(kBearer.size()) : "";
  has_shown_wrong_one_ = !shown.empty();
  const PermitPtr found = by_certificate ? access.current(by_certificate_, wall_time())
                                         : access.find(shown, wall_time());
  if (found != nullptr) set_permit(found);
  return found != nullptr;
}

// Whether it may make the call at all; else it is answered.
bool HttpSession::is_permitted(const Incoming& incoming, std::string& out) {
  const Route* const route = incoming.match.route;
  const bool is_preflight = incoming.parser.request().method == HttpMethod::options;
  return route == nullptr || is_preflight || !calls_.refuse_unpermitted(*route, out);
}

// It hears of it after a pause. What it sends behind that stays unread, or is dropped if the answer
// is its last.
void HttpSession::fail_attempt() {
  context_.stats.http_auth_failures.add();
  if (++failed_attempts_ == kFailedAttemptsMax) exchange_.keep_alive = false;
  if (!exchange_.keep_alive) fate_ = Fate::refused;
  pause_ = Pause::failed_attempt;
  state_ = State::paused;
}

void HttpSession::end_pause(std::string& out) {
  if (state_ != State::paused) return;
  pause_ = Pause::none;
  state_ = State::listening;
  const char* const why = has_shown_wrong_one_
                              ? "the auth token is not one of this server's, or has expired"
                              : "the auth token is needed: Authorization: Bearer <auth token>";
  refuse({401, "unauthorized", why}, out, "WWW-Authenticate: Bearer\r\n");
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
  answer_with(204, "", out, fields, "");
}

void HttpSession::call(const Incoming& incoming, std::string& out) {
  const HttpRequest& request = incoming.parser.request();
  const bool posts = request.method == HttpMethod::post;
  RequestParams query = RequestParams::of_query(incoming.target.query);
  // What takes its members from the body takes none from the query.
  if (posts && calls_.refuse_params(query, out)) return;
  RequestParams params = posts ? RequestParams::of_json(request.body) : std::move(query);
  calls_.execute(exchange_.call, incoming.match.rest, params, out);
}

// Streams. The head is sent at once: it says that whatever happens from now on will be told.

bool HttpSession::may_stream(std::string& out) {
  if (exchange_.with_body) return true;
  answer_with(200, "", out, {}, kStreamType);
  return false;
}

void HttpSession::begin_stream(std::string& out) {
  exchange_.keep_alive = false;
  const std::string fields = usual_fields(kNotKept);
  write_stream_head(out, head(200, kStreamType, fields));
  fate_ = Fate::open;  // it closes when the client does, or when the server stops
  state_ = State::streaming;
}

void HttpSession::push(std::string_view event, std::string_view json, std::string& out) {
  write_stream_event(out, !exchange_.http_1_0, event, json);
}

void HttpSession::ping(std::string& out) {
  if (state_ == State::streaming) write_stream_ping(out, !exchange_.http_1_0);
}

// Reports.

// With its length, if it is all there.
void HttpSession::report(const ReportPiece& piece, std::string& out) {
  if (!calls_.is_reporting()) return;
  const bool ends = piece.rest == nullptr;
  if (state_ == State::listening && (ends || piece.was_refused)) {
    calls_.end_report();
    if (piece.was_refused) return calls_.refuse_report(out);
    return answer_with(200, piece.text + std::string(report_end()), out, {}, report_type());
  }
  if (state_ == State::listening) begin_report(out);
  if (state_ != State::in_mid_report) return;
  write_stream_piece(out, !exchange_.http_1_0, piece.text);
  if (!ends) return;
  write_stream_piece(out, !exchange_.http_1_0, report_end());
  calls_.end_report();
  write_stream_end(out, !exchange_.http_1_0);
  state_ = State::listening;
  if (context_.draining) fate_ = Fate::closes;
}

// To HEAD the head is all.
void HttpSession::begin_report(std::string& out) {
  if (exchange_.http_1_0) exchange_.keep_alive = false;
  const std::string fields = reply_fields(200);
  write_stream_head(out, head(200, report_type(), fields));
  if (exchange_.with_body) {
    state_ = State::in_mid_report;
  } else {
    calls_.end_report();
  }
}

std::string_view HttpSession::report_type() const {
  return exchange_.call == HttpCall::metrics ? kMetricsType : kJsonType;
}

// The text of metrics has its own.
std::string_view HttpSession::report_end() const {
  return exchange_.call == HttpCall::metrics ? "" : "\n";
}

void HttpSession::answer_page(std::string_view path, std::string& out) {
  const WebFile* file = find_web_file(path);
  answer_with(200, file->content, out, kPageFields, file->type);
}

// Replies.

ReplyHead HttpSession::head(int status, std::string_view type, std::string_view fields) {
  if (context_.draining) exchange_.keep_alive = false;  // also when that began after the request
  if (!exchange_.keep_alive || peer_.is_forwarded()) fate_ = Fate::closes;  // with its only reply
  context_.stats.count_http(exchange_.call, status);
  log_end("ok");
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

void HttpSession::answer(int status, std::string_view json, std::string& out,
                         std::string_view fields) {
  std::string body(json);
  if (!body.ends_with('\n')) body += '\n';
  answer_with(status, body, out, fields, kJsonType);
}

void HttpSession::answer_with(int status, std::string_view body, std::string& out,
                              std::string_view fields, std::string_view type) {
  const std::string all = reply_fields(status) + std::string(fields);
  write_reply(out, head(status, type, all), body, exchange_.with_body);
}

void HttpSession::refuse(const HttpError& error, std::string& out, std::string_view fields) {
  calls_.refuse(error, out, fields);
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
  calls_.drain();
  switch (state_) {
    case State::in_mid_report:
    case State::passed:
    case State::paused: return;
    case State::streaming:
      calls_.end_stream();
      write_stream_end(out, !exchange_.http_1_0);
      state_ = State::listening;
      fate_ = Fate::closes;
      return;
    case State::listening:
      if (incoming_ == nullptr && !calls_.is_busy()) fate_ = Fate::closes;
      return;
  }
}

bool HttpSession::end(bool, int*) {
  incoming_.reset();
  if (calls_.listens()) context_.hub.drop(subscriber());
  calls_.end();
  log_end("gone");
  return true;
}

}  // namespace lockd
