#include "cluster/channel_transport.h"

#include <utility>

#include "cluster/link_session.h"
#include "server/session/session_host.h"

namespace lockd {
namespace {

// As for a client of this server's own.
constexpr std::size_t kUnsentSignalsMax = 1024 * 1024;
constexpr std::size_t kUnsentEventsMax = 256 * 1024;
constexpr std::size_t kUnsentReportMax = 256 * 1024;
// The other server keeps to the window, but for the end of a long request.
constexpr std::size_t kUnreadMax = 4 * kChannelWindow;

ChannelTransport::Time now() { return ChannelTransport::Time::clock::now(); }

}  // namespace

// What comes in.

void ChannelTransport::receive(std::string_view bytes) {
  is_resuming_ = false;
  if (is_over()) return;
  if (!bytes.empty()) heard_ = now();
  left_ -= std::min<std::uint64_t>(left_, bytes.size());
  unread_ += bytes;
  unacknowledged_ += bytes.size();
  const std::size_t taken = host_.receive(*this, unread_);
  if (is_over()) return;
  unread_.erase(0, taken);
  if (unread_.size() > kUnreadMax) return host_.cut(*this);
  acknowledge();
  deadlines_.on_input(heard_, session().request_under_way());
  // Half a request, or what waits behind one that blocks, is offered again with what comes next.
  if (taken == 0 || unread_.empty() || session().blocked() || is_resuming_) return;
  is_resuming_ = true;
  host_.resume_later(*this);
}

// Half a request counts as taken: the rest of it may need all of the window.
void ChannelTransport::acknowledge() {
  const bool waits = session().blocked() || is_held_back();
  const std::size_t kept = waits ? std::min(unread_.size(), unacknowledged_) : 0;
  if (unacknowledged_ - kept < kChannelWindow / 2) return;
  link_.send(FrameType::taken, client_, number_bytes(unacknowledged_ - kept));
  unacknowledged_ = kept;
}

void ChannelTransport::end_input(std::uint64_t left) {
  input_ended_ = true;
  left_ = left;
  host_.peer_closed(*this);
}

// What goes out.

void ChannelTransport::send(std::size_t size) {
  allowed_ = std::max(allowed_, size);
  const std::size_t now = std::min(allowed_, kChannelWindow - untaken_);
  if (now > 0) link_.send(FrameType::bytes, client_, std::string_view(output_).substr(0, now));
  output_.erase(0, now);
  allowed_ -= now;
  corked_ -= std::min(corked_, now);
  sent_ += now;
  untaken_ += now;
}

void ChannelTransport::on_taken(std::uint64_t bytes) {
  if (is_closed_) return;
  untaken_ -= std::min<std::uint64_t>(untaken_, bytes);
  send(0);
  if (is_closing_ && output_.empty()) close();
}

// What was held back for the journal's sake may be taken in now.
bool ChannelTransport::uncork() {
  deadlines_.on_reply(now());
  send(std::exchange(corked_, 0));
  if (is_held_back() && !is_over()) host_.resume_later(*this);
  return output_.size() > allowed_;
}

void ChannelTransport::unsay(std::uint64_t from) {
  const std::uint64_t kept = std::max(from, sent_ + allowed_) - sent_;
  output_.resize(std::min<std::uint64_t>(kept, output_.size()));
  corked_ = std::min(corked_, output_.size());
}

bool ChannelTransport::has_room_for_signal() { return unsent() <= kUnsentSignalsMax; }

bool ChannelTransport::has_room_for_event() const { return unsent() <= kUnsentEventsMax; }

bool ChannelTransport::has_room_for_report() const { return unsent() < kUnsentReportMax; }

void ChannelTransport::on_turn_end() {
  activity().heard.store(heard_, std::memory_order_relaxed);
  activity().unsent_bytes.store(unsent(), std::memory_order_relaxed);
}

// Ends.

void ChannelTransport::check_silence(Time now) {
  if (is_over()) return;
  const PeerDeadlines::State state{.is_open = session().fate() == ServerSession::Fate::open,
                                   .takes_input = !is_corked(),
                                   .last_input = heard_};
  switch (deadlines_.check(now, state, [&] { return host_.may_be_silent(*this); })) {
    case PeerDeadlines::Due::request: return host_.time_out(*this, true);
    case PeerDeadlines::Due::next_request: return host_.time_out(*this, false);
    case PeerDeadlines::Due::ping: return host_.ping(*this);
    default: return;
  }
}

void ChannelTransport::close_gently() {
  flush();
  is_closing_ = true;
  if (output_.empty()) close();
}

void ChannelTransport::close() {
  if (std::exchange(is_closed_, true)) return;
  link_.send(FrameType::close, client_, {});
  link_.forget(client_);
}

}  // namespace lockd
