#include "server/session/line_session.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "protocol/line/line_reply.h"
#include "server/session/session_host.h"

namespace lockd {
namespace {

// How much of what is pushed waits for the end of a report.
constexpr std::size_t kHeldPushesMax = 1024 * 1024;
// The longest answer to a call.
constexpr std::size_t kCallAnswerMax = 1024 * 1024;

HttpMethod method_of(std::string_view name) {
  if (name == "GET") return HttpMethod::get;
  return name == "POST" ? HttpMethod::post : HttpMethod::other;
}

Right right_for(Command command) {
  switch (command) {
    case Command::acquire:
    case Command::release:
    case Command::renew:
    case Command::enqueue:
    case Command::await_turn: return Right::lock;
    case Command::listen:
    case Command::unlisten:
    case Command::signal: return Right::signal;
    case Command::stats: return Right::read;
    case Command::auth:
    case Command::ping:
    case Command::barrier:
    case Command::client:
    case Command::peer:
    case Command::api: return Right::none;  // the call needs its own
  }
  return Right::admin;
}

// Commands that may leave a hold, a queue place or a subscription with the connection.
bool takes_or_waits(Command command) {
  switch (command) {
    case Command::acquire:
    case Command::enqueue:
    case Command::await_turn:
    case Command::listen: return true;
    default: return false;
  }
}

}  // namespace

LineSession::LineSession(SessionContext& context, SessionId id, Peer peer)
    : ServerSession(context, id, std::move(peer)),
      phase_(context.access.asks_for_token() && !peer_.is_forwarded() ? Phase::before_auth
                                                                      : Phase::open) {}

void LineSession::on_certificate(const CertificateNames& certificate) {
  const PermitPtr permit = context_.access.find(certificate, wall_time());
  if (permit == nullptr) return;
  set_permit(permit);
  phase_ = Phase::auth_optional;
}

std::size_t LineSession::take_in(std::string_view unread, std::string& out) {
  std::size_t taken = 0;
  is_inside_request_ = false;
  while (may_take_more(taken)) {
    const LineFramer::Framed framed = framer_.next(unread.substr(taken));
    if (framed.status == LineFramer::Status::incomplete) {
      is_inside_request_ = taken < unread.size();
      break;
    }
    if (framed.status == LineFramer::Status::line_too_long) {
      refuse(Violation::line_too_long, out);
      break;
    }
    if (!renew_permit()) {
      fate_ = Fate::closes;
      break;
    }
    const ParsedRequest parsed = parse_request(framed.lines, phase_);
    const bool may_be_for_another =
        context_.gate.follows() || parsed.request.command == Command::peer;
    if (parsed && may_be_for_another && hands_over(parsed.request)) break;
    taken += framed.size;
    ++requests_;
    context_.stats.line_requests.add();
    const bool is_permitted = parsed && may(parsed.request);
    // What the connection has from now on belongs to its principal, which `auth` must not replace.
    if (is_permitted && takes_or_waits(parsed.request.command)) phase_ = Phase::open;
    const std::size_t said = out.size();
    if (logs(LogLevel::debug)) begin_log(framed.lines.command, parsed);
    if (is_too_late(parsed)) {
      refuse_draining(parsed, out);
    } else if (!parsed) {
      refuse(parsed.violation, out);
    } else if (!is_permitted) {
      write_status(out, kStatusErrorDenied);
    } else {
      execute(parsed.request, out);
    }
    if (!blocked()) log_reply(std::string_view(out).substr(said));
  }
  return taken;
}

bool LineSession::may(const LineRequest& request) const {
  const Permit& permit = *this->permit();
  const Right right = right_for(request.command);
  if (!permit.may(right)) return false;
  if (!permit.is_confined()) return true;
  switch (right) {
    case Right::lock: return permit.may_touch(request.key);
    case Right::signal:
      return request.command == Command::signal ? permit.may_touch(request.key)
                                                : permit.may_listen(request.key);
    default: return true;
  }
}

// Of a request that is none nothing is shown: the auth token may be in it.
void LineSession::begin_log(std::string_view command, const ParsedRequest& parsed) {
  log_.begin(parsed ? command : "unknown", parsed.request.key, context_.engine.now());
  if (parsed.request.token.has_value()) log_.about(parsed.request.token->fence);
}

// The outcome is the first word of what the client is told.
void LineSession::log_reply(std::string_view reply) {
  log_end(reply.empty() ? "closed" : reply.substr(0, reply.find_first_of(" \n")));
}

void LineSession::execute(const LineRequest& request, std::string& out) {
  switch (request.command) {
    case Command::acquire: return acquire(request, out);
    case Command::enqueue: return enqueue(request, out);
    case Command::await_turn: return await_turn(request, out);
    case Command::release: return release(request, out);
    case Command::renew: return renew(request, out);
    case Command::client: return name_client(request, out);
    case Command::auth: return authenticate(request, out);
    case Command::stats:
      blocked_on_ = BlockedOn::report;
      return context_.host.ask(id(), {.what = ReportRequest::What::stats});
    case Command::ping: return write_status(out, kStatusOk);
    case Command::barrier: return barrier(out);
    case Command::listen: return listen(request, out);
    case Command::unlisten: return unlisten(request, out);
    case Command::signal: return publish(request, out);
    case Command::api: return call(request, out);
    case Command::peer: return refuse(Violation::unknown_command, out);
  }
}

// In whole seconds, as it is told: nobody may believe in more than there is.
Duration LineSession::lease(const LineRequest& request) const {
  if (request.ttl.has_value()) return *request.ttl;
  return std::chrono::ceil<std::chrono::seconds>(context_.options.default_lease_ttl);
}

// By a secret of its own the client may ask again.
Holder LineSession::holder_of(const LineRequest& request) {
  if (request.secret.has_value()) return Holder(&session_, *request.secret).chosen();
  return {&session_, context_.secrets.next()};
}

void LineSession::acquire(const LineRequest& request, std::string& out) {
  reply_or_wait(request,
                context_.batch.acquire({.key = request.key,
                                        .holder = holder_of(request),
                                        .ttl = lease(request),
                                        .wait = request.wait,
                                        .kind = request.kind,
                                        .limit = request.limit,
                                        .mode = request.mode,
                                        .permits = request.permits},
                                       &context_.host.listener(), session_.id),
                out);
}

void LineSession::enqueue(const LineRequest& request, std::string& out) {
  reply(request.command,
        context_.batch.enqueue({.key = request.key,
                                .holder = holder_of(request),
                                .ttl = lease(request),
                                .kind = request.kind,
                                .limit = request.limit,
                                .mode = request.mode,
                                .permits = request.permits}),
        out);
}

void LineSession::await_turn(const LineRequest& request, std::string& out) {
  reply_or_wait(request,
                context_.batch.await_turn(session_, request.kind, request.key, request.wait,
                                          &context_.host.listener(), session_.id),
                out);
}

void LineSession::release(const LineRequest& request, std::string& out) {
  if (!request.token.has_value()) return write_status(out, kStatusError);
  const Outcome outcome = context_.batch.release({.key = request.key,
                                                  .holder = {nullptr, request.token->secret},
                                                  .fence = request.token->fence,
                                                  .kind = request.kind});
  say(request.command, outcome, out);
}

void LineSession::renew(const LineRequest& request, std::string& out) {
  if (!request.token.has_value()) return write_status(out, kStatusError);
  const Answer answer = context_.batch.renew({.key = request.key,
                                              .holder = {nullptr, request.token->secret},
                                              .fence = request.token->fence,
                                              .kind = request.kind},
                                             request.ttl);
  // What was granted is what remains: no time has passed.
  if (answer.outcome == Outcome::ok) return write_remaining(out, answer.grant.ttl);
  say(request.command, answer.outcome, out);
}

void LineSession::reply_or_wait(const LineRequest& request, const Answer& answer,
                                std::string& out) {
  if (answer.outcome != Outcome::queued) return reply(request.command, answer, out);
  blocked_on_ = BlockedOn::wait;
  lost_in_wait_ = 0;
  waiting_command_ = request.command;
  wait_ = {answer.wait, request.kind, std::string(request.key)};
}

void LineSession::reply(Command command, const Answer& answer, std::string& out) {
  if (answer.outcome == Outcome::ok) {
    log_.about(answer.grant.fence);
    return write_grant(out, command, {answer.grant.fence, answer.grant.secret}, answer.grant.ttl);
  }
  say(command, answer.outcome, out);
}

void LineSession::say(Command command, Outcome outcome, std::string& out) {
  if (outcome == Outcome::not_leader) {
    return write_status(out, "error_not_leader " + context_.gate.leader_address());
  }
  const bool takes = command == Command::acquire || command == Command::enqueue;
  const bool failed = context_.engine.journal_state() == Journal::State::failed;
  if (outcome == Outcome::storage && failed && !takes) {
    // Whether the hold is in force will be seen when the server is back, so that neither `ok` nor
    // `error` is true: the client learns that it does not know. From a journal that is full it
    // learns that nothing has changed.
    fate_ = Fate::closes;
    return;
  }
  write_status(out, status_of(command, outcome, context_.options.detailed_errors));
}

// One machine always leads itself. In a cluster the reply leaves when the journal has taken
// something that was appended after the request had come.
void LineSession::barrier(std::string& out) {
  if (context_.gate.follows()) return say(Command::barrier, Outcome::not_leader, out);
  context_.gate.confirm(context_.batch);
  write_status(out, kStatusOk);
}

// What the leader is asked.

// The session in whose place another comes, which finds the request unread: a client's, which
// copies it to the leader, or the leader's end of a link.
bool LineSession::hands_over(const LineRequest& request) {
  if (request.command == Command::peer) {
    successor_ = context_.gate.accept_link(context_, *this);
  } else if (phase_ != Phase::before_auth && !context_.hands_over() && is_for_leader(request)) {
    successor_ = context_.gate.proxy(context_, *this, {.is_loopback = peer_.is_loopback});
  }
  return successor_ != nullptr;
}

// Every other request is answered here until a channel is open.
bool LineSession::is_for_leader(const LineRequest& request) const {
  switch (request.command) {
    case Command::acquire:
    case Command::release:
    case Command::renew:
    case Command::enqueue:
    case Command::await_turn:
    case Command::barrier:
    case Command::listen:
    case Command::unlisten:
    case Command::signal: return true;
    case Command::api: break;
    default: return false;
  }
  Target target;
  RouteMatch match;
  if (find_call(request, &target, &match)) return false;
  RequestParams params = RequestParams::of_json(request.text.empty() ? "{}" : request.text);
  return ApiCalls::is_for_leader(context_, match.route->call, params);
}

void LineSession::on_wait_done(const WaitResult& result, std::string& out) {
  if (call_waits()) return calls_->on_wait_done(result, out);
  if (blocked_on_ != BlockedOn::wait) return;
  blocked_on_ = BlockedOn::nothing;
  const std::size_t said = out.size();
  reply(waiting_command_, {result.outcome, result.grant, {}}, out);
  log_reply(std::string_view(out).substr(said));
  if (result.outcome == Outcome::ok && result.grant.fence == lost_in_wait_) {
    write_lost(out, {result.grant.fence, result.grant.secret}, lost_cause_, wait_.key);
  }
}

// A grant may end before its session has taken in that there is one: then it is said again behind
// the grant, whose token the client did not know before. Of a key's fences that is the largest.
bool LineSession::on_lost(const LostHold& lost, std::string& out) {
  const bool waits_for_it =
      blocked_on_ == BlockedOn::wait && lost.kind == wait_.kind && lost.key == wait_.key;
  if (waits_for_it && lost.fence > lost_in_wait_) {
    lost_in_wait_ = lost.fence;
    lost_cause_ = lost.cause;
  }
  write_lost(push_to(out), {lost.fence, lost.secret}, lost.cause, lost.key);
  return held_pushes_.size() <= kHeldPushesMax;
}

void LineSession::report(const ReportPiece& piece, std::string& out) {
  if (calls_ != nullptr && calls_->is_reporting()) return report_to_call(piece, out);
  if (blocked_on_ != BlockedOn::report) return;
  const bool ends = piece.rest == nullptr;
  write_stats(out, piece.text, !std::exchange(is_inside_line_, !ends), ends);
  if (!ends) return;
  log_end(kStatusOk);
  blocked_on_ = BlockedOn::nothing;
  out += std::exchange(held_pushes_, {});
}

bool LineSession::signalled(const Signal& signal, std::string& out) {
  if (calls_ != nullptr && calls_->listens()) {
    calls_->signalled(signal, out);
  } else {
    push_to(out) += signal.line();
  }
  return held_pushes_.size() <= kHeldPushesMax;
}

void LineSession::on_key_event(const KeyEventJson& event, std::uint64_t missed, std::string& out) {
  if (calls_ != nullptr) calls_->on_key_event(event, missed, out);
  if (held_pushes_.size() > kHeldPushesMax) fate_ = Fate::closes;
}

// Calls of the API.

void LineSession::call(const LineRequest& request, std::string& out) {
  ApiCalls::Replies& replies = *this;
  if (calls_ == nullptr) calls_ = std::make_unique<ApiCalls>(context_, *this, replies);
  Target target;
  RouteMatch match;
  if (const HttpError error = find_call(request, &target, &match)) {
    return calls_->refuse(error, out);
  }
  if (calls_->refuse_unpermitted(*match.route, out)) return;
  const HttpCall call = match.route->call;
  if (ApiCalls::is_too_late(context_, call)) return calls_->refuse_draining(out);
  if (ApiCalls::takes_or_waits(call)) phase_ = Phase::open;
  if (call == HttpCall::listen && listens_) {
    return calls_->refuse({409, "already_listening", "this connection listens by `listen`"}, out);
  }
  RequestParams params = RequestParams::of_json(request.text.empty() ? "{}" : request.text);
  calls_->execute(call, match.rest, params, out);
}

// Status 0 when there is such a call.
HttpError LineSession::find_call(const LineRequest& request, Target* target,
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

// In one line, of which every client can take so much.
void LineSession::report_to_call(const ReportPiece& piece, std::string& out) {
  call_report_ += piece.text;
  const bool is_too_long = call_report_.size() > kCallAnswerMax;
  const bool goes_on = piece.rest != nullptr && !is_too_long && !piece.was_refused;
  if (goes_on) return;
  calls_->end_report();
  const std::string text = std::exchange(call_report_, {});
  if (piece.was_refused) return calls_->refuse_report(out);
  if (!is_too_long) return answer(200, text, out, {});
  calls_->refuse({413, "too_large", "the answer is longer than 1 MiB: ask for a page by `limit`"},
                 out);
}

void LineSession::answer(int status, std::string_view json, std::string& out, std::string_view) {
  write_call_answer(out, status, json);
  log_end(kStatusOk);
}

bool LineSession::may_stream(std::string& out) {
  if (!calls_->is_streaming()) return true;
  calls_->refuse({409, "already_streaming", "a connection has one stream, until it closes"}, out);
  return false;
}

void LineSession::begin_stream(std::string& out) { write_call_answer(out, 200, "{}"); }

void LineSession::push(std::string_view event, std::string_view json, std::string& out) {
  write_event(push_to(out), event, json);
}

// The rest.

void LineSession::authenticate(const LineRequest& request, std::string& out) {
  const PermitPtr permit = context_.access.find(request.text, wall_time());
  if (permit == nullptr) {
    return fail_attempt(out);
  }
  set_permit(permit);
  phase_ = Phase::open;
  write_status(out, kStatusOk);
}

// What it asks for from now on is known by it. Who says the same again is known as before: what it
// holds shares one identity.
void LineSession::name_client(const LineRequest& request, std::string& out) {
  name_session(
      {.name = std::string(request.key), .peer = peer_.address, .note = std::string(request.text)});
  write_status(out, kStatusOk);
}

void LineSession::name_session(ClientIdentity identity) {
  if (session_.client != nullptr && *session_.client == identity) return;
  session_.client = std::make_shared<const ClientIdentity>(std::move(identity));
  context_.clients.name(id(), session_.client);
}

// What comes by a stream of signals cannot be told from what comes by `listen`: it is one or the
// other.
void LineSession::listen(const LineRequest& request, std::string& out) {
  const bool streams = calls_ != nullptr && calls_->listens();
  const bool listens = !streams && context_.hub.listen(subscriber(), request.key, request.text);
  listens_ = listens_ || listens;
  write_status(out, listens ? kStatusOk : kStatusError);
}

void LineSession::unlisten(const LineRequest& request, std::string& out) {
  context_.hub.unlisten(subscriber(), request.key, request.text);
  write_status(out, kStatusOk);
}

void LineSession::publish(const LineRequest& request, std::string& out) {
  const auto reached = context_.host.publish(*this, request.key, request.text);
  if (reached) return write_count(out, *reached);
  blocked_on_ = BlockedOn::signal;
}

void LineSession::on_published(std::size_t reached, std::string& out) {
  if (blocked_on_ != BlockedOn::signal) {
    if (calls_ != nullptr) calls_->on_published(reached, out);
    return;
  }
  blocked_on_ = BlockedOn::nothing;
  write_count(out, reached);
  log_end(kStatusOk);
}

// Before it has shown an auth token nothing else is looked at: it has none, or does not say.
void LineSession::refuse(Violation violation, std::string& out) {
  if (phase_ == Phase::before_auth) return fail_attempt(out);
  note(violation);
  write_status(out, kStatusError);
  const bool goes_on = !context_.options.close_on_violation && leaves_framing_intact(violation);
  if (!goes_on) fate_ = Fate::closes;
}

// Who says nothing has not tried.
void LineSession::time_out(bool, std::string& out) {
  if (phase_ != Phase::before_auth) return refuse(Violation::read_timeout, out);
  note(Violation::read_timeout);
  turn_out(Pause::not_served, out);
}

void LineSession::fail_attempt(std::string& out) {
  context_.stats.line_auth_failures.add();
  turn_out(Pause::failed_attempt, out);
}

void LineSession::turn_out(Pause pause, std::string& out) {
  write_status(out, kStatusErrorAuth);
  fate_ = Fate::refused;
  pause_ = pause;
}

void LineSession::end_pause(std::string&) {
  pause_ = Pause::none;
  fate_ = Fate::closes;
}

// While the server stops: what would take something, or wait for it. In a cluster everything.
bool LineSession::is_too_late(const ParsedRequest& parsed) const {
  if (context_.hands_over()) return true;
  return context_.draining && parsed && takes_or_waits(parsed.request.command);
}

// The host closes who holds nothing. In a cluster everybody is closed: what they hold is kept for
// the next leader, but for what they give back.
void LineSession::refuse_draining(const ParsedRequest& parsed, std::string& out) {
  if (context_.hands_over()) {
    std::string unsaid;
    if (parsed && parsed.request.command == Command::release) release(parsed.request, unsaid);
    fate_ = Fate::closes;
  }
  write_status(out, kStatusErrorDraining);
}

void LineSession::turn_away(std::string& out) {
  phase_ = Phase::before_auth;
  turn_out(Pause::not_served, out);
}

void LineSession::drain(std::string&) {
  if (blocked_on_ == BlockedOn::wait) context_.batch.cancel(wait_.id);
  if (calls_ != nullptr) calls_->drain();
}

bool LineSession::may_go() {
  return !context_.hands_over() && !blocked() && !context_.batch.has_acknowledged_hold(session_);
}

bool LineSession::end(bool keep_holds, int* budget) {
  // Its place goes with the session; but it may have been granted meanwhile.
  if (keep_holds && blocked_on_ == BlockedOn::wait) context_.host.abandon(*this);
  if (calls_ != nullptr) calls_->end();
  const bool listens = listens_ || (calls_ != nullptr && calls_->listens());
  std::string().swap(held_pushes_);
  std::string().swap(call_report_);
  blocked_on_ = BlockedOn::nothing;
  log_end("gone");
  const bool has_ended = context_.batch.end_session(session_, keep_holds, budget);
  return has_ended && (!listens || context_.hub.drop_some(subscriber(), budget));
}

bool LineSession::may_be_silent() {
  return blocked() || is_told_unasked() || context_.batch.has_state(session_);
}

bool LineSession::is_told_unasked() const {
  return (calls_ != nullptr && calls_->is_streaming()) ||
         (listens_ && context_.hub.listens(subscriber()));
}

}  // namespace lockd
