#include "server/session/line_session.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/overloaded.h"
#include "protocol/line/line_reply.h"
#include "service/line_codec.h"

namespace lockd {
namespace {

// Pushes that wait for the end of a report's line, in bytes.
constexpr std::size_t kHeldPushesMax = 1024 * 1024;
// The longest reply to an `api` call, in bytes.
constexpr std::size_t kApiReplyMax = 1024 * 1024;

HttpMethod method_of(std::string_view name) {
  if (name == "GET") return HttpMethod::get;
  return name == "POST" ? HttpMethod::post : HttpMethod::other;
}

HttpError read_api(JsonCodec& codec, const LineRequest& request, const RouteMatch& match) {
  const std::string_view json = request.text.empty() ? "{}" : request.text;
  return codec.read(match.route->call, match.rest, RequestParams::of_json(json));
}

bool is_denied(const Reply& reply) {
  const auto* rejected = std::get_if<Rejected>(&reply);
  return rejected != nullptr && rejected->reason == Rejected::Reason::denied;
}

}  // namespace

LineSession::LineSession(SessionContext& context, SessionId id, Peer peer)
    : ServerSession(context, id, std::move(peer)),
      phase_(is_authenticated_ ? Phase::open : Phase::before_auth) {}

void LineSession::enter(Phase phase) {
  phase_ = phase;
  is_authenticated_ = phase != Phase::before_auth;
}

// Requests.

std::size_t LineSession::on_bytes(std::string_view unread, std::string& out) {
  std::size_t taken = 0;
  request_under_way_ = 0;
  while (can_take_more(taken)) {
    const LineFramer::Framed framed = framer_.next(unread.substr(taken));
    if (framed.status == LineFramer::Status::incomplete) {
      if (taken < unread.size()) request_under_way_ = requests_ + 1;
      break;
    }
    if (framed.status == LineFramer::Status::line_too_long) {
      break_rule(Violation::line_too_long, out);
      break;
    }
    if (!renew_permit()) {
      close();
      break;
    }
    const ParsedRequest parsed = parse_request(framed.lines, phase_);
    if (parsed && passes_on(parsed.request)) break;
    taken += framed.size;
    ++requests_;
    context_.stats.line_requests.add();
    execute(framed.lines, parsed, out);
  }
  return taken;
}

// Whether another session takes the place of this one: a proxy, which carries the client's bytes to
// the leader, or the leader's end of a link. It finds the request unread.
bool LineSession::passes_on(const LineRequest& request) {
  if (request.command == Command::peer) {
    successor_ = context_.gate.accept_link(context_, *this);
  } else if (context_.gate.follows() && phase_ != Phase::before_auth && !context_.hands_over() &&
             is_for_leader(request)) {
    successor_ = context_.gate.proxy(context_, *this,
                                     {.is_loopback = executor_.caller().peer().is_loopback});
  }
  return successor_ != nullptr;
}

bool LineSession::is_for_leader(const LineRequest& request) {
  if (request.command == Command::auth) return false;
  if (request.command != Command::api) {
    return with_call(request, context_.options,
                     [this](const auto& call) { return executor_.is_for_leader(call); });
  }
  Target target;
  RouteMatch match;
  JsonCodec codec(context_.options, context_.clients);
  return !find_route(request, &target, &match) && !read_api(codec, request, match) &&
         executor_.is_for_leader(codec.call());
}

void LineSession::execute(const RequestLines& lines, const ParsedRequest& parsed,
                          std::string& out) {
  command_ = parsed.request.command;
  // The text of a broken request may contain an auth token, so the log does not show it.
  executor_.log().begin(parsed ? lines.command : "unknown");
  const std::size_t before = out.size();
  if (context_.hands_over()) {
    hand_over(parsed, out);
  } else if (!parsed) {
    break_rule(parsed.violation, out);
  } else {
    execute(parsed.request, out);
  }
  if (executor_.log().is_under_way() && !is_blocked())
    log_reply(std::string_view(out).substr(before));
}

// The outcome is the first word of the reply.
void LineSession::log_reply(std::string_view line) {
  executor_.log().end(line.empty() ? "closed" : line.substr(0, line.find_first_of(" \n")));
}

void LineSession::execute(const LineRequest& request, std::string& out) {
  if (request.command == Command::auth) return authenticate(request, out);
  if (request.command == Command::api) return call_api(request, out);
  if (request.command == Command::peer) return break_rule(Violation::unknown_command, out);
  const Operation operation = operation_of(request.command);
  if (!executor_.caller().may(operation))
    return reply(executor_.caller().rejection_of(operation), out);
  lost_in_wait_ = 0;
  const Reply result = with_call(request, context_.options,
                                 [this](const auto& call) { return executor_.execute_one(call); });
  // What the connection has from now on belongs to its principal, which `auth` must not replace.
  const bool may_authenticate = phase_ != Phase::open;
  if (may_authenticate && rule_of(operation).takes && !is_denied(result)) enter(Phase::open);
  reply(result, out);
}

void LineSession::authenticate(const LineRequest& request, std::string& out) {
  const PermitPtr permit = context_.access.find(request.text, wall_time());
  if (permit == nullptr) return fail_attempt(out);
  executor_.caller().set_permit(permit);
  enter(Phase::open);
  write_status(out, kStatusOk);
}

// The server of a cluster stops: the next leader keeps the holds, so the session executes only what
// gives something back.
void LineSession::hand_over(const ParsedRequest& parsed, std::string& out) {
  if (parsed && parsed.request.command == Command::release &&
      executor_.caller().permit()->may(Right::lock)) {
    with_call(parsed.request, context_.options,
              [this](const auto& call) { return executor_.execute_one(call); });
  }
  close();
  write_status(out, kStatusErrorDraining);
}

// Before authentication every broken rule is a failed attempt.
void LineSession::break_rule(Violation violation, std::string& out) {
  if (phase_ == Phase::before_auth) return fail_attempt(out);
  note(violation);
  write_status(out, kStatusError);
  if (context_.options.close_on_violation || !leaves_framing_intact(violation)) close();
}

void LineSession::fail_attempt(std::string& out) {
  context_.stats.line_auth_failures.add();
  reject_client(Pause::failed_attempt, out);
}

void LineSession::reject_client(Pause pause, std::string& out) {
  write_status(out, kStatusErrorAuth);
  reject(pause);
}

// Calls of the API.

void LineSession::call_api(const LineRequest& request, std::string& out) {
  if (api_ == nullptr) api_ = std::make_unique<JsonCodec>(context_.options, context_.clients);
  Target target;
  RouteMatch match;
  if (const HttpError error = find_route(request, &target, &match)) {
    return write_api(json_refusal(error), out);
  }
  const Operation operation = match.route->operation;
  if (!executor_.caller().may(operation))
    return reply_api(executor_.caller().rejection_of(operation), out);
  if (rule_of(operation).takes) enter(Phase::open);
  if (match.route->call == HttpCall::openapi) {
    return write_api({.body = std::string(find_web_file(target.path)->content)}, out);
  }
  if (const HttpError error = read_api(*api_, request, match)) {
    return write_api(json_refusal(error), out);
  }
  reply_api(executor_.execute(api_->call()), out);
}

// Status 0: `match` is the route.
HttpError LineSession::find_route(const LineRequest& request, Target* target,
                                  RouteMatch* match) const {
  const std::size_t space = request.key.find(' ');
  if (space == std::string_view::npos) {
    return {400, "bad_request", "the second line must be a method and a path: GET /v1/locks"};
  }
  if (!parse_target(request.key.substr(space + 1), target)) {
    return {400, "bad_request", "a percent sign without two hex digits"};
  }
  if (!target->query.empty()) {
    return {400, "bad_request", "parameters are members of the JSON object in the third line"};
  }
  *match = match_route(method_of(request.key.substr(0, space)), target->path);
  const bool is_page = match->route == nullptr && find_web_file(target->path) != nullptr;
  if (is_page || (match->route != nullptr && match->route->call == HttpCall::metrics)) {
    return {406, "not_acceptable", "its answer is not JSON: ask for it over HTTP"};
  }
  if (match->route == nullptr) return {404, "not_found", "there is nothing here"};
  if (match->method_fits) return {};
  const bool posts = match->route->method == HttpMethod::post;
  return {405, "method_not_allowed", std::string("allowed: ") + (posts ? "POST" : "GET")};
}

// Replies.

void LineSession::reply(const Reply& reply, std::string& out) {
  if (command_ == Command::api) return reply_api(reply, out);
  if (lockd::is_blocked(reply)) return;
  if (const auto* part = std::get_if<ReportPart>(&reply))
    return write_stats_piece(*part->piece, out);
  const auto* refused = std::get_if<Refused>(&reply);
  const bool takes = command_ == Command::acquire || command_ == Command::enqueue;
  // Neither `ok` nor `error` would be true: the client must find out after the restart.
  if (refused != nullptr && refused->may_be_in_force && !takes) return close();
  write_reply(out, command_, reply, context_.options);
}

void LineSession::write_stats_piece(const ReportPiece& piece, std::string& out) {
  const bool ends = piece.rest == nullptr;
  write_stats(out, piece.text, !std::exchange(is_inside_line_, !ends), ends);
  if (!ends) return;
  executor_.log().end(kStatusOk);
  out += std::exchange(held_pushes_, {});
}

void LineSession::reply_api(const Reply& reply, std::string& out) {
  if (lockd::is_blocked(reply)) return;
  if (const auto* part = std::get_if<ReportPart>(&reply)) return collect_report(*part->piece, out);
  if (std::holds_alternative<StreamBegun>(reply)) return write_call_answer(out, 200, "{}");
  write_api(api_->write(reply, {context_.engine.now(), context_.unix_ms()}), out);
}

void LineSession::write_api(const JsonReply& reply, std::string& out) {
  executor_.log().note_outcome(reply.error);
  write_call_answer(out, reply.status, reply.body);
  executor_.log().end(kStatusOk);
}

// A client takes lines of at most kApiReplyMax.
void LineSession::collect_report(const ReportPiece& piece, std::string& out) {
  api_report_ += piece.text;
  const bool is_too_long = api_report_.size() > kApiReplyMax;
  if (piece.rest != nullptr && !is_too_long) return;
  executor_.end_report();
  JsonReply reply{.body = std::exchange(api_report_, {})};
  if (is_too_long) {
    reply = json_refusal(
        {413, "too_large", "the answer is longer than 1 MiB: ask for a page by `limit`"});
  }
  write_api(reply, out);
}

// Events.

bool LineSession::on_event(const SessionEvent& event, std::string& out) {
  const bool was_blocked = is_blocked();
  const std::size_t before = out.size();
  std::visit(Overloaded{
                 [&](const WaitDone& e) { end_wait(e.result, out); },
                 [&](const ReportArrived& e) { reply(executor_.on_report(e.piece), out); },
                 [&](const SignalPublished& e) { reply(executor_.on_published(e.delivered), out); },
                 [&](const ClientDisconnected&) { reply(executor_.on_disconnected(), out); },
                 [&](const SignalReceived& e) {
                   if (executor_.listens_by_stream())
                     return push_event("sig", signal_json(e.signal), out);
                   push_to(out) += e.signal.line();
                 },
                 [&](const KeyEventSeen& e) {
                   if (e.missed > 0) push_event("missed", missed_json(e.missed), out);
                   push_event(e.event.event, e.event.data, out);
                 },
                 [&](const HoldLost& e) { push_loss(e.lost, out); },
                 [&](const CertificateShown& e) { use_certificate(e.names); },
                 [&](const ClientRejected&) {
                   enter(Phase::before_auth);
                   reject_client(Pause::rejected, out);
                 },
                 [&](const PauseOver&) {
                   pause_ = Pause::none;
                   close();
                 },
                 [&](const ClientTimedOut&) { time_out(out); },
                 [&](const RequestTruncated&) { note(Violation::disconnected); },
                 [&](const DrainBegun&) { executor_.cancel_wait(); },
                 [](const auto&) {},
             },
             event);
  if (was_blocked && !is_blocked() && executor_.log().is_under_way()) {
    log_reply(std::string_view(out).substr(before));
  }
  return held_pushes_.size() <= kHeldPushesMax;
}

// The grant may have been lost before the session learned of it. The client then learns of the loss
// again, behind the grant: it did not know the lock token before.
void LineSession::end_wait(const WaitResult& result, std::string& out) {
  reply(executor_.on_wait_done(result), out);
  const Grant& grant = result.grant;
  if (result.outcome == Outcome::ok && grant.fence == lost_in_wait_) {
    write_lost(out, {grant.fence, grant.secret}, lost_cause_, executor_.wait().key);
  }
}

void LineSession::push_event(std::string_view event, std::string_view json, std::string& out) {
  if (!executor_.is_streaming()) return;
  write_event(push_to(out), event, json);
  if (held_pushes_.size() > kHeldPushesMax) close();
}

void LineSession::push_loss(const LostHold& lost, std::string& out) {
  const PendingWait& wait = executor_.wait();
  const bool is_awaited = executor_.is_waiting() && lost.kind == wait.kind && lost.key == wait.key;
  if (is_awaited && lost.fence > lost_in_wait_) {
    lost_in_wait_ = lost.fence;
    lost_cause_ = lost.cause;
  }
  write_lost(push_to(out), {lost.fence, lost.secret}, lost.cause, lost.key);
}

void LineSession::use_certificate(const CertificateNames& names) {
  const PermitPtr permit = context_.access.find(names, wall_time());
  if (permit == nullptr) return;
  executor_.caller().set_permit(permit);
  enter(Phase::auth_optional);
}

// A silent client has not tried to authenticate.
void LineSession::time_out(std::string& out) {
  if (phase_ != Phase::before_auth) return break_rule(Violation::read_timeout, out);
  note(Violation::read_timeout);
  reject_client(Pause::rejected, out);
}

// Ends.

bool LineSession::on_end(bool keep_holds, int* budget) {
  std::string().swap(held_pushes_);
  std::string().swap(api_report_);
  return ServerSession::on_end(keep_holds, budget);
}

std::size_t LineSession::buffered() const {
  return ServerSession::buffered() + held_pushes_.size() + api_report_.size();
}

bool LineSession::can_close() {
  return !context_.hands_over() && !is_blocked() && !executor_.has_acknowledged_hold();
}

}  // namespace lockd
