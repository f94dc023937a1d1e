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
  if (hosted_->is_over) return;
  if (!bytes.empty()) heard_ = now();
  left_ -= std::min<std::uint64_t>(left_, bytes.size());
  unread_ += bytes;
  unacknowledged_ += bytes.size();
  const std::size_t taken = host_.receive(*hosted_, unread_);
  if (hosted_->is_over) return;
  unread_.erase(0, taken);
  if (unread_.size() > kUnreadMax) return host_.cut(*hosted_);
  acknowledge();
  deadlines_.on_input(heard_, hosted_->session->request_under_way());
  // Half a request, or what waits behind one that blocks, is offered again with what comes next.
  if (taken == 0 || unread_.empty() || hosted_->session->is_blocked() || is_resuming_) return;
  is_resuming_ = true;
  host_.resume_later(*hosted_);
}

// Half a request counts as taken: the rest of it may need all of the window.
void ChannelTransport::acknowledge() {
  const bool waits = hosted_->session->is_blocked() || hosted_->is_held_back;
  const std::size_t kept = waits ? std::min(unread_.size(), unacknowledged_) : 0;
  if (unacknowledged_ - kept < kChannelWindow / 2) return;
  link_.send(FrameType::taken, client_, number_bytes(unacknowledged_ - kept));
  unacknowledged_ = kept;
}

void ChannelTransport::end_input(std::uint64_t left) {
  input_ended_ = true;
  left_ = left;
  host_.on_input_end(*hosted_);
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
  if (hosted_->is_held_back && !hosted_->is_over) host_.resume_later(*hosted_);
  return output_.size() > allowed_;
}

void ChannelTransport::roll_back_output(std::uint64_t from) {
  const std::uint64_t kept = std::max(from, sent_ + allowed_) - sent_;
  output_.resize(std::min<std::uint64_t>(kept, output_.size()));
  corked_ = std::min(corked_, output_.size());
}

bool ChannelTransport::has_room_for(Push what) {
  switch (what) {
    case Push::signal: return unsent() <= kUnsentSignalsMax;
    case Push::event: return unsent() <= kUnsentEventsMax;
    case Push::report: return unsent() < kUnsentReportMax;
  }
  return false;
}

void ChannelTransport::on_turn_end() {
  hosted_->activity->heard.store(heard_, std::memory_order_relaxed);
  hosted_->activity->unsent_bytes.store(unsent(), std::memory_order_relaxed);
}

// Ends.

void ChannelTransport::check_silence(Time now) {
  if (hosted_->is_over) return;
  const PeerDeadlines::State state{.is_open = hosted_->session->is_open(),
                                   .takes_input = !hosted_->is_corked(),
                                   .last_input = heard_};
  switch (deadlines_.check(now, state, [&] { return hosted_->session->may_be_silent(); })) {
    case PeerDeadlines::Due::request: return host_.on_event(*hosted_, ClientTimedOut{true});
    case PeerDeadlines::Due::next_request: return host_.on_event(*hosted_, ClientTimedOut{false});
    case PeerDeadlines::Due::ping: return host_.on_event(*hosted_, KeepAliveDue{});
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
