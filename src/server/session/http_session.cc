#include "server/session/http_session.h"

#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/secret.h"
#include "protocol/http/web_files.h"

namespace lockd {
namespace {

constexpr std::string_view kBearer = "Bearer ";

// A short request may have a long answer: those of one read could come to hundreds of times what
// was read.
constexpr std::size_t kOutputPerTurn = 256 * 1024;

bool needs_no_proof(HttpCall call) {
  return call == HttpCall::live || call == HttpCall::ready || call == HttpCall::leader;
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
  if (boost::beast::iequals(name, "localhost") || name.ends_with(".localhost")) return true;
  boost::system::error_code error;
  boost::asio::ip::make_address(name, error);
  return !error;
}

}  // namespace

std::size_t HttpSession::take_in(std::string_view unread, std::string& out) {
  std::size_t taken = 0;
  const std::size_t enough = out.size() + kOutputPerTurn;
  pushed_ = 0;
  while (fate_ == Fate::open && !blocked() && taken < unread.size() && out.size() < enough &&
         pushed_ < kPushesPerTurn) {
    if (parser_ == nullptr) {
      parser_ = std::make_unique<RequestParser>();
      ++requests_;
    }
    taken += parser_->take_in(unread.substr(taken));
    if (parser_->wants_continue()) write_continue(out);
    if (!parser_->error() && !parser_->is_complete()) break;
    const std::unique_ptr<RequestParser> parser = std::move(parser_);
    if (parser->error()) {
      exchange_ = {};
      refuse(parser->error(), out);
    } else {
      execute(parser->request(), out);
    }
  }
  return taken;
}

void HttpSession::execute(const HttpRequest& request, std::string& out) {
  exchange_ = {.keep_alive = request.keep_alive,
               .http_1_0 = request.http_1_0,
               .with_body = request.method != HttpMethod::head};
  Target target;
  if (!parse_target(request.target, &target)) {
    return refuse({400, "bad_request", "a percent sign without two hex digits"}, out);
  }
  const RouteMatch match = match_route(request.method, target.path);
  const WebFile* file = match.route == nullptr ? find_web_file(target.path) : nullptr;
  if (match.route != nullptr) exchange_.call = match.route->call;
  if (file != nullptr) exchange_.call = HttpCall::page;
  if (!admit(request, exchange_.call, out)) return;

  if (match.route == nullptr && file == nullptr) {
    return refuse({404, "not_found", "there is nothing here"}, out);
  }
  if (request.method == HttpMethod::options) return answer_options(match.route, out);
  const bool gets = request.method == HttpMethod::get || request.method == HttpMethod::head;
  if (file != nullptr ? !gets : !match.method_fits) {
    const std::string_view allowed =
        file != nullptr ? "GET, HEAD, OPTIONS" : allowed_methods(*match.route);
    return refuse({405, "method_not_allowed", "allowed: " + std::string(allowed)}, out,
                  "Allow: " + std::string(allowed) + "\r\n");
  }
  if (file != nullptr) return answer_page(target.path, out);
  call(target, match.rest, request, out);
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
  if (context_.options.http_is_protected() && !request.host.empty() && !is_own_name(request.host)) {
    refuse({403, "protected_mode", "in protected mode Host must be localhost or an address"}, out);
    return false;
  }
  if (request.has_origin && !is_allowed_origin(request)) {
    refuse({403, "foreign_origin", "this origin is not allowed: see --http-allow-origin"}, out);
    return false;
  }
  // The page holds no secret, and is what asks for the token. A browser asks for leave without one.
  if (call == HttpCall::page || request.method == HttpMethod::options) return true;
  if (!knows_secret(request.authorization)) {
    refuse({401, "unauthorized", "a bearer token is needed"}, out, "WWW-Authenticate: Bearer\r\n");
    return false;
  }
  if (context_.draining) {
    refuse({503, "draining", "the server is stopping"}, out, "Retry-After: 1\r\n");
    return false;
  }
  return true;
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

bool HttpSession::knows_secret(std::string_view authorization) const {
  const std::string& secret = context_.options.secret;
  if (secret.empty()) return true;
  const bool is_bearer = boost::beast::iequals(authorization.substr(0, kBearer.size()), kBearer);
  const std::string_view shown = is_bearer ? authorization.substr(kBearer.size()) : "";
  return equal_in_constant_time(shown, secret);
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

void HttpSession::answer(int status, std::string_view body, std::string& out,
                         std::string_view fields, std::string_view type) {
  const bool is_file = exchange_.call == HttpCall::page || exchange_.call == HttpCall::openapi;
  std::string all = usual_fields(is_file && status == 200 ? kAskedForAgain : kNotKept);
  all += "X-Content-Type-Options: nosniff\r\n";
  all += fields;
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

// One that says nothing is closed at once; it could not know that its next request is too late.
void HttpSession::drain(std::string& out) {
  switch (state_) {
    case State::waiting: context_.batch.cancel(wait_.id); return;
    case State::reporting: return;
    case State::streaming:
      write_stream_end(out, !exchange_.http_1_0);
      state_ = State::listening;
      fate_ = Fate::closes;
      return;
    case State::listening:
      if (parser_ == nullptr) fate_ = Fate::closes;
      return;
  }
}

void HttpSession::end(bool) {
  if (listens_) context_.hub.drop(subscriber());
  if (state_ != State::waiting) return;
  if (!context_.batch.cancel(wait_.id)) {
    context_.desk.abandon(id(), wait_.kind, wait_.key, wait_.holder);
  }
}

}  // namespace lockd
