#include "server/session/http_session.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>
#include <cstdint>
#include <utility>

#include "base/overloaded.h"
#include "base/text.h"

namespace lockd {
namespace {

constexpr std::string_view kBearer = "Bearer ";
// The connection closes with the reply to this failed attempt.
constexpr std::uint8_t kFailedAttemptsMax = 10;

// A short request may have a long reply, so the requests of one read could produce hundreds of
// times its size.
constexpr std::size_t kOutputPerTurn = 256 * 1024;

// The characters of host names and of IPv4 addresses.
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

bool is_health_check(HttpCall call) {
  return call == HttpCall::live || call == HttpCall::ready || call == HttpCall::leader;
}

bool is_ipv6(std::string_view text) {
  boost::system::error_code error;
  boost::asio::ip::make_address_v6(text, error);
  return !error;
}

// The name or address in a Host, without its port and brackets. Empty if any part of the field is
// malformed: the part before the flaw may be another machine's name.
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

// Whether no page of another site can have pointed this name at this machine. Otherwise a browser
// could be made to take this server for that site's own.
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

// A head may be larger than this.
constexpr std::uint64_t kSmallBodyMax = 4096;

// The beginning of a call's name in the log.
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
constexpr std::string_view kNoStore = "no-store";
constexpr std::string_view kRevalidate = "no-cache";
constexpr std::string_view kPageFields =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\n";

}  // namespace

// Receiving.

std::size_t HttpSession::on_bytes(std::string_view unread, std::string& out) {
  std::size_t taken = 0;
  const std::size_t enough = out.size() + kOutputPerTurn;
  while (taken < unread.size() && out.size() < enough && can_take_more(taken)) {
    if (incoming_ == nullptr) {
      incoming_ = std::make_unique<Incoming>();
      ++requests_;
    }
    const std::size_t more = incoming_->parser.take_in(unread.substr(taken));
    taken += more;
    advance(taken == unread.size(), out);
    if (incoming_ != nullptr && more == 0) break;
  }
  request_under_way_ = incoming_ == nullptr ? 0 : requests_;
  return taken;
}

std::size_t HttpSession::buffered() const {
  return ServerSession::buffered() + (incoming_ == nullptr ? 0 : incoming_->parser.buffered());
}

// Continues with what has arrived of the request; `is_last`: nothing else has.
void HttpSession::advance(bool is_last, std::string& out) {
  RequestParser& parser = incoming_->parser;
  if (parser.error()) {
    exchange_ = {};
    executor_.log().begin("unknown");
    refuse(parser.error(), out);
    return incoming_.reset();
  }
  const bool was_admitted = incoming_->is_admitted;
  if (parser.has_head() && !was_admitted) {
    if (!admit_head(*incoming_, out)) return incoming_.reset();
    incoming_->is_admitted = true;
    if (is_last && parser.wants_continue()) write_continue(out);
  }
  if (!parser.is_complete()) return;
  const std::unique_ptr<Incoming> incoming = std::move(incoming_);
  execute(*incoming, !was_admitted, out);
}

// Whether the request may continue; otherwise it has been answered. The session does not look for
// the end of a body that it does not want, so it keeps the connection open only if there is none.
bool HttpSession::admit_head(Incoming& incoming, std::string& out) {
  const HttpRequest& request = incoming.parser.request();
  exchange_ = {.keep_alive = request.keep_alive && incoming.parser.is_complete(),
               .http_1_0 = request.http_1_0,
               .with_body = request.method != HttpMethod::head};
  if (!parse_target(request.target, &incoming.target)) {
    executor_.log().begin("unknown");
    refuse({400, "bad_request", "a percent sign without two hex digits"}, out);
    return false;
  }
  // The query is left out. A path can be any bytes; the log is UTF-8.
  if (logs(LogLevel::debug)) {
    executor_.log().begin(as_utf8(name_of(request.method) + incoming.target.path));
  }
  incoming.match = match_route(request.method, incoming.target.path);
  if (incoming.match.route != nullptr) {
    exchange_.call = incoming.match.route->call;
  } else if (find_web_file(incoming.target.path) != nullptr) {
    exchange_.call = HttpCall::page;
  }
  if (!check_caller(request, out) || !check_method(incoming, out) || !check_rights(incoming, out) ||
      !has_room_for_body(incoming, out)) {
    return false;
  }
  exchange_.keep_alive = request.keep_alive;
  return true;
}

bool HttpSession::check_method(const Incoming& incoming, std::string& out) {
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

bool HttpSession::check_rights(const Incoming& incoming, std::string& out) {
  const Route* const route = incoming.match.route;
  if (route == nullptr || incoming.parser.request().method == HttpMethod::options) return true;
  if (executor_.caller().may(route->operation)) return true;
  reply(executor_.caller().rejection_of(route->operation), out);
  return false;
}

// Small bodies are received however full the buffers are, because they renew leases.
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

// Whether the server serves this caller; otherwise the request has been answered.
bool HttpSession::check_caller(const HttpRequest& request, std::string& out) {
  if (is_health_check(exchange_.call)) return true;
  if (executor_.caller().peer().is_forwarded()) {  // the follower has checked the caller
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
  // A browser need not name the origin of what it loads for a page. Pages may link to ours.
  const bool is_page = exchange_.call == HttpCall::page;
  const bool is_foreign_page =
      request.has_origin ? !is_allowed_origin(request) : request.is_cross_site && !is_page;
  if (is_foreign_page) {
    refuse({403, "foreign_origin", "this origin is not allowed: see --http-allow-origin"}, out);
    return false;
  }
  // The page holds no secret, and is what asks for the token. A browser asks for leave without one.
  if (is_page || request.method == HttpMethod::options) return true;
  if (!authenticate(request)) {
    fail_attempt();
    return false;
  }
  is_authenticated_ = true;
  return true;
}

// Where no auth token is needed, being on this machine is enough, so a browser on it must not be
// led here by another name.
bool HttpSession::is_allowed_host(std::string_view host) const {
  const Options& options = context_.options;
  if (options.demands_proof()) return true;
  if (!executor_.caller().peer().at_loopback && !options.http_is_protected()) return true;
  if (host.empty() || is_own_name(host)) return true;  // HTTP/1.0, which no browser speaks
  const auto& allowed = options.http_allow_host;
  return std::any_of(allowed.begin(), allowed.end(), [&](const std::string& name) {
    return name == "*" || boost::beast::iequals(name, host_name(host));
  });
}

// The page's own requests are allowed, and those of origins that the options name.
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

// By the auth token if the request shows one or needs one, otherwise by the certificate.
bool HttpSession::authenticate(const HttpRequest& request) {
  const Access& access = context_.access;
  const std::string_view authorization = request.authorization;
  const bool by_certificate = authorization.empty() && certificate_permit_ != nullptr;
  if (!by_certificate && !access.asks_for_token()) {
    executor_.caller().set_permit(
        access.permit_for(executor_.caller().peer(), request.is_forwarded));
    return true;
  }
  const bool is_bearer = boost::beast::iequals(authorization.substr(0, kBearer.size()), kBearer);
  const std::string_view shown = is_bearer ? authorization.substr(kBearer.size()) : "";
  has_shown_wrong_token_ = !shown.empty();
  const PermitPtr found = by_certificate ? access.current(certificate_permit_, wall_time())
                                         : access.find(shown, wall_time());
  if (found != nullptr) executor_.caller().set_permit(found);
  return found != nullptr;
}

// The client learns of it after a pause. What it sends in between stays unread, or is dropped if
// the reply is the last.
void HttpSession::fail_attempt() {
  context_.stats.http_auth_failures.add();
  if (++failed_attempts_ == kFailedAttemptsMax) exchange_.keep_alive = false;
  if (!exchange_.keep_alive) close_state_ = CloseState::rejected;
  pause_ = Pause::failed_attempt;
}

// Executing.

void HttpSession::execute(const Incoming& incoming, bool was_complete, std::string& out) {
  const HttpRequest& request = incoming.parser.request();
  if (request.method == HttpMethod::options) return answer_options(incoming.match.route, out);
  if (exchange_.call == HttpCall::page) return answer_file(incoming.target.path, kPageFields, out);
  if (!renew_permit()) return close();
  // The server may have begun to stop, and rights may have changed, while the body arrived.
  if (!was_complete && !check_rights(incoming, out)) return;
  if (exchange_.call == HttpCall::openapi) return answer_file(incoming.target.path, {}, out);
  call(incoming, out);
}

void HttpSession::call(const Incoming& incoming, std::string& out) {
  const HttpRequest& request = incoming.parser.request();
  const bool posts = request.method == HttpMethod::post;
  RequestParams query = RequestParams::of_query(incoming.target.query);
  // A call whose parameters are in the body takes none from the query.
  if (posts && query.error()) return refuse(query.error(), out);
  const HttpError error =
      codec_.read(exchange_.call, incoming.match.rest,
                  posts ? RequestParams::of_json(request.body) : std::move(query));
  if (error) return refuse(error, out);
  if (is_stream(exchange_.call) && !exchange_.with_body) {
    if (const auto denied = executor_.caller().check_names(codec_.call()))
      return reply(*denied, out);
    return write_body(200, "", out, {}, kStreamType);
  }
  if (executor_.is_for_leader(codec_.call())) {
    if (const auto denied = executor_.caller().check_names(codec_.call()))
      return reply(*denied, out);
    if (passes_on(request)) return;
  }
  reply(executor_.execute(codec_.call()), out);
}

// Whether a proxy passes the request on to the leader, as a message of its own: with what is needed
// to execute it and to write the reply, and without the fields that concern this connection.
bool HttpSession::passes_on(const HttpRequest& request) {
  successor_ = context_.gate.proxy(
      context_, *this,
      {.http = write_request(request, exchange_.allowed_origin),
       .is_loopback = executor_.caller().peer().is_loopback && !request.is_forwarded});
  is_passed_on_ = successor_ != nullptr;
  return is_passed_on_;
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
  write_body(204, "", out, fields, "");
}

void HttpSession::answer_file(std::string_view path, std::string_view fields, std::string& out) {
  const WebFile* file = find_web_file(path);
  write_body(200, file->content, out, fields, file->type);
}

// Replies.

void HttpSession::reply(const Reply& reply, std::string& out) {
  if (lockd::is_blocked(reply)) return;
  if (std::holds_alternative<StreamBegun>(reply)) return begin_stream(out);
  if (const auto* part = std::get_if<ReportPart>(&reply)) {
    return write_report_piece(*part->piece, out);
  }
  write(codec_.write(reply, {context_.engine.now(), context_.unix_ms()}), out);
}

void HttpSession::write(const JsonReply& reply, std::string& out) {
  executor_.log().note_outcome(reply.error);
  write_body(reply.status, reply.body + (reply.body.ends_with('\n') ? "" : "\n"), out, reply.fields,
             kJsonType);
}

void HttpSession::write_body(int status, std::string_view body, std::string& out,
                             std::string_view fields, std::string_view type) {
  const std::string all = reply_fields(status) + std::string(fields);
  write_reply(out, head(status, type, all), body, exchange_.with_body);
}

ReplyHead HttpSession::head(int status, std::string_view type, std::string_view fields) {
  if (context_.draining) exchange_.keep_alive = false;  // even if it began after the request
  // The connection of a forwarded request ends with its only reply.
  if (!exchange_.keep_alive || executor_.caller().peer().is_forwarded()) close();
  context_.stats.count_http(exchange_.call, status);
  executor_.log().end("ok");
  return {.status = status,
          .content_type = type,
          .fields = fields,
          .keep_alive = exchange_.keep_alive,
          .http_1_0 = exchange_.http_1_0};
}

std::string HttpSession::common_fields(std::string_view cache_control) const {
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
  return common_fields(is_file && status == 200 ? kRevalidate : kNoStore) +
         "X-Content-Type-Options: nosniff\r\n";
}

// The head is sent at once: it says that every later event will be sent.
void HttpSession::begin_stream(std::string& out) {
  exchange_.keep_alive = false;
  const std::string fields = common_fields(kNoStore);
  write_stream_head(out, head(200, kStreamType, fields));
  close_state_ = CloseState::open;  // until the client leaves, or the server stops
}

void HttpSession::end_stream(std::string& out) {
  executor_.end_stream();
  write_stream_end(out, is_chunked());
  close();
}

// A report that is complete with its first piece has a length.
void HttpSession::write_report_piece(const ReportPiece& piece, std::string& out) {
  const bool is_text = exchange_.call == HttpCall::metrics;
  const std::string_view last = is_text ? "" : "\n";  // a JSON document ends with a line feed
  const bool ends = piece.rest == nullptr;
  if (ends && !is_in_report_) {
    return write_body(200, piece.text + std::string(last), out, {},
                      is_text ? kMetricsType : kJsonType);
  }
  if (!is_in_report_) {
    if (exchange_.http_1_0) exchange_.keep_alive = false;
    const std::string fields = reply_fields(200);
    write_stream_head(out, head(200, is_text ? kMetricsType : kJsonType, fields));
    if (!exchange_.with_body) return executor_.end_report();
    is_in_report_ = true;
  }
  write_stream_piece(out, is_chunked(), piece.text);
  if (!ends) return;
  write_stream_piece(out, is_chunked(), last);
  write_stream_end(out, is_chunked());
  is_in_report_ = false;
  if (context_.draining) close();
}

// Events.

bool HttpSession::on_event(const SessionEvent& event, std::string& out) {
  std::visit(Overloaded{
                 [&](const WaitDone& e) { reply(executor_.on_wait_done(e.result), out); },
                 [&](const ReportArrived& e) { reply(executor_.on_report(e.piece), out); },
                 [&](const SignalPublished& e) { reply(executor_.on_published(e.delivered), out); },
                 [&](const ClientDisconnected&) { reply(executor_.on_disconnected(), out); },
                 [&](const SignalReceived& e) { push("sig", signal_json(e.signal), out); },
                 [&](const KeyEventSeen& e) {
                   if (e.missed > 0) push("missed", missed_json(e.missed), out);
                   push(e.event.event, e.event.data, out);
                 },
                 [&](const KeepAliveDue&) {
                   if (executor_.is_streaming()) write_stream_ping(out, is_chunked());
                 },
                 [&](const CertificateShown& e) { use_certificate(e.names); },
                 [&](const ClientRejected&) {
                   is_foreign_ = true;
                   is_authenticated_ = false;
                 },
                 [&](const PauseOver&) { refuse_attempt(out); },
                 [&](const ClientTimedOut& e) { time_out(e.in_request, out); },
                 [&](const ProxyEnded& e) { end_proxy(e.error, out); },
                 [&](const DrainBegun&) { drain(out); },
                 [](const auto&) {},
             },
             event);
  return true;
}

void HttpSession::push(std::string_view event, std::string_view json, std::string& out) {
  if (executor_.is_streaming()) write_stream_event(out, is_chunked(), event, json);
}

void HttpSession::use_certificate(const CertificateNames& names) {
  certificate_permit_ = context_.access.find(names, wall_time());
  if (certificate_permit_ == nullptr) return;
  executor_.caller().set_permit(certificate_permit_);
  is_authenticated_ = true;
}

void HttpSession::refuse_attempt(std::string& out) {
  if (pause_ == Pause::none) return;
  pause_ = Pause::none;
  const char* const why = has_shown_wrong_token_
                              ? "the auth token is not one of this server's, or has expired"
                              : "the auth token is needed: Authorization: Bearer <auth token>";
  refuse({401, "unauthorized", why}, out, "WWW-Authenticate: Bearer\r\n");
}

void HttpSession::end_proxy(const HttpError& error, std::string& out) {
  is_passed_on_ = false;
  if (error) {
    const LeaderAddress leader = context_.leader();
    return refuse(error, out, advice_for(error, error.code == "not_leader" ? &leader : nullptr));
  }
  if (!exchange_.keep_alive || context_.draining) close();
  executor_.log().end("passed on");
}

void HttpSession::time_out(bool in_request, std::string& out) {
  if (in_request) {
    exchange_ = {};
    refuse({408, "request_timeout", "the request was not whole in time"}, out);
  }
  close();
}

// An idle connection is closed at once: a client that has something to renew or release opens
// another.
void HttpSession::drain(std::string& out) {
  executor_.cancel_wait();
  if (executor_.is_streaming()) return end_stream(out);
  if (!is_blocked() && incoming_ == nullptr) close();
}

bool HttpSession::on_end(bool keep_holds, int* budget) {
  incoming_.reset();
  return ServerSession::on_end(keep_holds, budget);
}

}  // namespace lockd
