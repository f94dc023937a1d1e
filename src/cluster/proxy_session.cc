#include "cluster/proxy_session.h"

#include <algorithm>
#include <utility>

#include "base/overloaded.h"
#include "server/session/session_host.h"

namespace lockd {
namespace {

// Little is not worth a frame, and must not use up the window.
constexpr std::size_t kWorthAFrame = kChannelWindow / 2;

Peer peer_of(const ServerSession& client) {
  Peer peer = client.executor().caller().peer();
  peer.client = client.executor().client();
  return peer;
}

Opening opening_of(const ServerSession& client, const ProxyRequest& request) {
  const Permit& permit = *client.executor().caller().permit();
  Opening opening{.is_http = !request.http.empty(),
                  .is_loopback = request.is_loopback,
                  .is_tls = client.executor().caller().peer().is_tls,
                  .has_certificate = permit.proof == Permit::Proof::certificate,
                  .peer = client.executor().caller().peer().address,
                  .principal = permit.name};
  if (client.executor().client() == nullptr) return opening;
  opening.names_itself = true;
  opening.name = client.executor().client()->name;
  opening.note = client.executor().client()->note;
  return opening;
}

}  // namespace

ProxySession::ProxySession(SessionContext& context, const ServerSession& client,
                           ProxyRequest request, FollowerLink& link, Channel::Time connected,
                           Channel::Time deadline)
    : ServerSession(context, client.id(), peer_of(client)),
      is_http_(!request.http.empty()),
      request_(std::move(request.http)),
      channel_(link, client.id(), opening_of(client, {request_, request.is_loopback}), connected,
               *this) {
  executor_.caller().set_permit(client.executor().caller().permit());
  is_authenticated_ = true;
  follows_output_ = true;
  is_exempt_from_timeouts_ = true;
  channel_.start(deadline);
}

// A client that sends no more is connected until the leader closes its channel.
bool ProxySession::is_blocked() const {
  return is_open() && (is_http_ || input_ended_ || channel_.room() == 0);
}

std::size_t ProxySession::on_bytes(std::string_view unread, std::string&) {
  left_ = unread.size();
  if (is_http_ || channel_.state() != Channel::State::open) return 0;
  const std::size_t size = std::min(unread.size(), channel_.room());
  channel_.send(unread.substr(0, size));
  left_ -= size;
  return size;
}

void ProxySession::send_request() {
  const std::size_t size = std::min(request_.size(), channel_.room());
  channel_.send(std::string_view(request_).substr(0, size));
  request_.erase(0, size);
}

// A request that waits for a leader is answered then, and never sent.
void ProxySession::end_input() {
  if (std::exchange(input_ended_, true)) return;
  if (channel_.state() == Channel::State::waiting) return channel_.give_up();
  channel_.end_input(is_http_ ? request_.size() : left_);
}

void ProxySession::on_channel_open() {
  if (is_http_) return send_request();
  go_on();
}

void ProxySession::on_channel_room() {
  if (is_http_) return send_request();
  if (left_ > 0) go_on();
}

void ProxySession::on_channel_bytes(std::string_view bytes) {
  HostedSession& client = *context_.host.find(id());
  client.transport->output() += bytes;
  unacknowledged_ += bytes.size();
  is_answered_ = true;
  context_.host.touch(client);
}

void ProxySession::acknowledge(std::size_t unsent) {
  const std::size_t sent = unacknowledged_ - std::min(unsent, unacknowledged_);
  if (sent < kWorthAFrame) return;
  channel_.acknowledge(sent);
  unacknowledged_ -= sent;
}

// The rest of a reply that has begun is lost with the leader.
void ProxySession::on_channel_end(Channel::End end) {
  using End = Channel::End;
  if (end == End::no_leader) {
    predecessor_->note_no_leader(context_.engine.now());
    return give_back({503, "not_leader", std::string(describe(Outcome::not_leader))});
  }
  const bool is_whole = end == End::closed && is_answered_;
  if (is_http_ && is_whole) return give_back({});
  if (is_http_ && !is_answered_) {
    if (end == End::closed) return give_back({503, "busy", "the leader has too many clients"});
    return give_back({502, "leader_lost", "the leader was lost: the request may be executed"});
  }
  context_.host.finish(*context_.host.find(id()), CloseReason::server);
}

void ProxySession::give_back(const HttpError& error) {
  predecessor_->on_event(ProxyEnded{error}, context_.host.find(id())->transport->output());
  successor_ = std::move(predecessor_);
  go_on();
}

void ProxySession::go_on() { context_.host.resume_later(*context_.host.find(id())); }

bool ProxySession::on_event(const SessionEvent& event, std::string&) {
  std::visit(Overloaded{
                 [&](const InputEnded&) { end_input(); },
                 [&](const OutputTaken& e) { acknowledge(e.unsent); },
                 [&](const SessionLeaving& e) {
                   channel_.close(e.detaches ? FrameType::detach : FrameType::close);
                 },
                 [&](const DrainBegun&) { close(); },
                 [](const auto&) {},
             },
             event);
  return true;
}

bool ProxySession::on_end(bool keep_holds, int* budget) {
  ServerSession& predecessor = predecessor_ != nullptr ? *predecessor_ : *successor_;
  return predecessor.on_end(keep_holds, budget);
}

}  // namespace lockd
