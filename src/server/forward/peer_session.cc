#include "server/forward/peer_session.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "server/log.h"
#include "server/session/session_host.h"

namespace lockd {
namespace {

// As for a client of this server's own.
constexpr std::uint64_t kForwardedSignalsMax = 1024 * 1024;
constexpr std::uint64_t kForwardedEventsMax = 256 * 1024;
constexpr std::uint64_t kForwardedReportMax = 256 * 1024;
constexpr std::size_t kUnreadMax = 1024 * 1024;

}  // namespace

// One client's channel.

void ForwardedTransport::receive(std::string_view bytes) {
  is_resuming_ = false;
  if (is_over()) return;
  unread_ += bytes;
  const std::size_t taken = host_.receive(*this, unread_);
  if (is_over()) return;
  unread_.erase(0, taken);
  if (unread_.size() > kUnreadMax) return host_.cut(*this);
  count_unread();
  // Half a request, or what waits behind one that blocks, is offered again with what comes next.
  if (taken == 0 || unread_.empty() || session().blocked() || is_resuming_) return;
  is_resuming_ = true;
  host_.resume_later(*this);
}

void ForwardedTransport::count_unread() {
  link_.count_buffered(std::exchange(counted_, unread_.size()), unread_.size());
}

void ForwardedTransport::end_input() {
  input_ended_ = true;
  host_.peer_closed(*this);
}

void ForwardedTransport::send(std::size_t size) {
  if (size > 0 && is_linked_) {
    link_.send(FrameType::bytes, client_, std::string_view(output_).substr(0, size));
    untaken_ += size;
  }
  output_.erase(0, size);
  sent_ += size;
}

// What was held back for the journal's sake may be taken in now.
bool ForwardedTransport::uncork() {
  send(std::exchange(corked_, 0));
  if (is_held_back() && !is_over()) host_.resume_later(*this);
  return !output_.empty();
}

void ForwardedTransport::unsay(std::uint64_t from) {
  output_.resize(std::min<std::uint64_t>(std::max(from, sent_) - sent_, output_.size()));
  corked_ = std::min(corked_, output_.size());
}

bool ForwardedTransport::has_room_for_signal() { return unsent() <= kForwardedSignalsMax; }

bool ForwardedTransport::has_room_for_event() const { return unsent() <= kForwardedEventsMax; }

bool ForwardedTransport::has_room_for_report() const { return unsent() < kForwardedReportMax; }

void ForwardedTransport::on_turn_end() {
  activity().unsent_bytes.store(unsent(), std::memory_order_relaxed);
}

// The link hears of its end with the last that it says.
void ForwardedTransport::on_session_end() {
  std::string().swap(unread_);
  count_unread();
}

void ForwardedTransport::close_gently() {
  flush();
  close();
}

void ForwardedTransport::close() {
  if (std::exchange(is_closed_, true) || !is_linked_) return;
  is_linked_ = false;
  link_.send(FrameType::close, client_, {});
  link_.forget(client_);
}

// The link.

PeerSession::PeerSession(SessionContext& context, SessionId id, Peer peer, std::string node)
    : ServerSession(context, id, std::move(peer)), node_(std::move(node)) {
  const ClientIdentity who{.name = node_, .peer = peer_.address, .note = "forwards"};
  context_.clients.name(this->id(), std::make_shared<const ClientIdentity>(who));
  log_event(LogLevel::info, "a server of the cluster forwards to this one",
            {{"node", node_}, {"peer", peer_.address}});
}

std::size_t PeerSession::take_in(std::string_view unread, std::string& out) {
  std::string_view rest = unread;
  Frame frame;
  FrameStatus status = FrameStatus::complete;
  while (fate_ == Fate::open && (status = take_frame(rest, &frame)) == FrameStatus::complete) {
    take(frame, out);
  }
  if (status == FrameStatus::malformed) fate_ = Fate::closes;
  return unread.size() - rest.size();
}

// A client that this end has closed may be spoken for until the other end hears of it.
void PeerSession::take(const Frame& frame, std::string& out) {
  if (frame.type == FrameType::open) return open(frame, out);
  const auto found = channels_.find(frame.client);
  if (found == channels_.end()) return;
  ForwardedTransport& channel = *found->second;
  switch (frame.type) {
    case FrameType::bytes: return channel.receive(frame.payload);
    case FrameType::taken:
      channel.on_taken(number_in(frame.payload).value_or(0));
      return context_.host.continue_report(channel);
    case FrameType::end: return channel.end_input();
    case FrameType::close:
    case FrameType::detach: return close(channel, frame.type);
    case FrameType::open:
    case FrameType::opened: return;
  }
}

void PeerSession::open(const Frame& frame, std::string& out) {
  const auto client = forwarded_client_in(frame.payload);
  if (!client || channels_.size() >= kChannelsMax) {
    fate_ = Fate::closes;
    return;
  }
  const auto found = channels_.find(frame.client);
  if (found != channels_.end()) return found->second->line_session().rename(*client);
  const SessionId id = session_for(*client);
  Peer from{.address = client->peer,
            .is_tls = peer_.is_tls,
            .forwarded_as = node_ + "/" + std::to_string(frame.client)};
  auto session = std::make_unique<LineSession>(context_, id, std::move(from), *client);
  auto channel = std::make_unique<ForwardedTransport>(*this, context_.host, frame.client);
  LineSession& opened = *session;
  channel->carry(opened);
  channels_[frame.client] = channel.get();
  context_.host.open(std::move(session), std::move(channel));
  opened.rename(*client);
  write_frame(out, FrameType::opened, frame.client, id);
}

// The one that it had, if nobody has that now, here or at another host. It cannot be one that is
// yet to come.
SessionId PeerSession::session_for(const ForwardedClient& client) const {
  const bool is_back = client.session != 0 && client.session <= context_.last_session->load() &&
                       context_.host.find(client.session) == nullptr &&
                       !context_.clients.status(client.session);
  return is_back ? client.session : ++*context_.last_session;
}

void PeerSession::close(ForwardedTransport& channel, FrameType how) {
  SessionHost& host = context_.host;
  host.cut(channel,
           how == FrameType::close ? SessionHost::Ender::peer : SessionHost::Ender::journal);
}

void PeerSession::send(FrameType type, SessionId client, std::string_view payload) {
  Transport* const link = context_.host.find(id());
  if (link == nullptr || link->is_over()) return;
  write_frame(link->output(), type, client, payload);
  context_.host.send_soon(*link);
}

bool PeerSession::end(bool, int* budget) {
  while (!channels_.empty() && *budget > 0) {
    context_.host.detach(*channels_.begin()->second);
    --*budget;
  }
  if (!channels_.empty()) return false;
  context_.forwarder->leave_link(node_, id());
  return true;
}

}  // namespace lockd
