#include "cluster/link_session.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/overloaded.h"
#include "protocol/line/line_reply.h"
#include "server/log.h"
#include "server/session/http_session.h"
#include "server/session/line_session.h"
#include "server/session/session_host.h"

namespace lockd {

LinkSession::LinkSession(SessionContext& context, const ServerSession& client, ClusterLinks& links,
                         OnLoop& on_loop)
    : ServerSession(context, client.id(), client.executor().caller().peer()),
      links_(links),
      on_loop_(on_loop) {
  is_authenticated_ = false;
  request_under_way_ = 1;
  on_loop_.insert(this);
}

LinkSession::~LinkSession() {
  links_.channels -= channels_.size();
  on_loop_.erase(this);
}

std::size_t LinkSession::on_bytes(std::string_view unread, std::string& out) {
  std::string_view rest = unread;
  while (is_open() && !is_authenticated_) {
    const LineFramer::Framed framed = framer_.next(rest);
    if (framed.status == LineFramer::Status::incomplete) return unread.size() - rest.size();
    if (framed.status == LineFramer::Status::line_too_long) {
      fail_attempt(out);
      break;
    }
    shake_hands(framed.lines, out);
    rest.remove_prefix(framed.size);
  }
  Frame frame;
  FrameStatus status = FrameStatus::complete;
  while (is_open() && (status = take_frame(rest, &frame)) == FrameStatus::complete) {
    take(frame);
  }
  if (status == FrameStatus::malformed) close();
  return unread.size() - rest.size();
}

// The handshake: `peer`, a name and a nonce, which is answered with a nonce; then `peer`, the name
// and a proof, which is answered with a proof.

void LinkSession::shake_hands(const RequestLines& lines, std::string& out) {
  const ParsedRequest parsed = parse_request(lines, Phase::open);
  if (!parsed || parsed.request.command != Command::peer) return fail_attempt(out);
  const std::string_view shown = parsed.request.text;
  if (challenge_.answerer_nonce.empty()) {
    if (!is_nonce(shown)) return fail_attempt(out);
    challenge_ = {.node = std::string(parsed.request.key),
                  .asker_nonce = std::string(shown),
                  .answerer_nonce = make_nonce(context_.secrets),
                  .channel = context_.host.find(id())->transport->tls_binding()};
    return write_status(out, "ok " + challenge_.answerer_nonce);
  }
  const HashedSecret& secret = context_.options.cluster_secret;
  if (!proves(shown, secret, challenge_, LinkEnd::asker)) return fail_attempt(out);
  close();
  const bool is_cut_off = context_.cluster != nullptr && context_.cluster->is_cut_off();
  const bool leads = !is_cut_off && !context_.gate.follows() && !context_.draining;
  if (!leads) return write_status(out, "error_not_leader " + context_.gate.leader_address());
  // The follower has lost its last link, and this server does not know yet: its clients end first.
  const SessionId last = links_.find(challenge_.node);
  if (last != 0 && context_.clients.disconnect(last, [](Position) {})) {
    return write_status(out, "error_busy");
  }
  close_state_ = CloseState::open;
  write_status(out, "ok " + prove(secret, challenge_, LinkEnd::answerer));
  accept(challenge_.node, out);
}

// "n2/0": the follower's name, and which of its loops it is.
void LinkSession::accept(const std::string& link, std::string& out) {
  link_ = link;
  node_ = link.substr(0, link.rfind('/'));
  is_authenticated_ = true;
  is_exempt_from_timeouts_ = true;
  request_under_way_ = 0;
  links_.enter(link_, id());
  const ClientIdentity who{
      .name = node_, .peer = executor_.caller().peer().address, .note = "forwards"};
  context_.clients.name(id(), std::make_shared<const ClientIdentity>(who));
  log_event(LogLevel::info, "a server of the cluster forwards to this one",
            {{"node", node_}, {"peer", executor_.caller().peer().address}});
  write_frame(out, FrameType::clock, 0, number_bytes(link_clock_ms(Time::clock::now())));
}

void LinkSession::fail_attempt(std::string& out) {
  context_.stats.line_auth_failures.add();
  write_status(out, kStatusErrorAuth);
  reject(Pause::failed_attempt);
}

bool LinkSession::on_event(const SessionEvent& event, std::string& out) {
  std::visit(Overloaded{
                 [&](const PauseOver&) {
                   pause_ = Pause::none;
                   close();
                 },
                 [&](const ClientTimedOut&) { fail_attempt(out); },
                 [&](const DrainBegun&) { close(); },
                 [](const auto&) {},
             },
             event);
  return true;
}

// Channels. One that this end has closed may be spoken of until the other end knows.

void LinkSession::take(const Frame& frame) {
  if (frame.type == FrameType::open) return open(frame);
  const auto found = channels_.find(frame.client);
  if (found == channels_.end()) return;
  ChannelTransport& channel = *found->second;
  SessionHost& host = context_.host;
  switch (frame.type) {
    case FrameType::bytes: return channel.receive(frame.payload);
    case FrameType::taken:
      channel.on_taken(number_in(frame.payload).value_or(0));
      return host.continue_report(channel.hosted());
    case FrameType::end: return channel.end_input(number_in(frame.payload).value_or(0));
    case FrameType::close: return host.cut(channel.hosted(), CloseReason::peer);
    case FrameType::detach: return host.cut(channel.hosted(), CloseReason::journal);
    case FrameType::open:
    case FrameType::clock: return;
  }
}

void LinkSession::open(const Frame& frame) {
  const auto opening = opening_in(frame.payload);
  if (!opening || channels_.contains(frame.client)) {
    close();
    return;
  }
  const std::uint32_t most = context_.options.max_connections;
  if (most != 0 && links_.channels >= most) return send(FrameType::close, frame.client, {});
  Peer from{.address = opening->peer,
            .is_loopback = opening->is_loopback,
            .is_tls = opening->is_tls,
            .forwarded_as = node_ + '/' + std::to_string(frame.client),
            .principal = opening->principal,
            .has_certificate = opening->has_certificate};
  if (opening->names_itself) {
    from.client = std::make_shared<const ClientIdentity>(
        ClientIdentity{.name = opening->name, .peer = opening->peer, .note = opening->note});
  }
  const ClientRef client = from.client;
  const SessionId id = links_.ids.take(opening->connected_ms);
  std::unique_ptr<ServerSession> session;
  if (opening->is_http) {
    session = std::make_unique<HttpSession>(context_, id, std::move(from));
  } else {
    session = std::make_unique<LineSession>(context_, id, std::move(from));
  }
  auto channel = std::make_unique<ChannelTransport>(
      *this, context_.host, frame.client, Time::clock::now(), context_.options.read_timeout);
  channels_[frame.client] = channel.get();
  ++links_.channels;
  context_.host.open(std::move(session), std::move(channel));
  context_.clients.authenticate(id, opening->principal);
  if (client != nullptr) context_.clients.name(id, client);
}

void LinkSession::forget(SessionId client) { links_.channels -= channels_.erase(client); }

void LinkSession::send(FrameType type, SessionId client, std::string_view payload) {
  HostedSession* const wire = context_.host.find(id());
  if (wire == nullptr || wire->is_over) return;
  write_frame(wire->transport->output(), type, client, payload);
  context_.host.touch(*wire);
}

std::size_t LinkSession::buffered() const {
  std::size_t bytes = 0;
  for (const auto& [client, channel] : channels_) bytes += channel->buffered();
  return bytes;
}

void LinkSession::tick(Time now) {
  if (!is_authenticated_) return;
  send(FrameType::clock, 0, number_bytes(link_clock_ms(now)));
  std::vector<SessionId> clients;
  for (const auto& [client, channel] : channels_) clients.push_back(client);
  for (const SessionId client : clients) {
    const auto found = channels_.find(client);
    if (found != channels_.end()) found->second->check_silence(now);
  }
}

bool LinkSession::on_end(bool, int* budget) {
  while (!channels_.empty() && *budget > 0) {
    context_.host.cut(channels_.begin()->second->hosted(), CloseReason::journal);
    --*budget;
  }
  if (!channels_.empty()) return false;
  if (is_authenticated_) links_.leave(link_, id());
  return true;
}

}  // namespace lockd
