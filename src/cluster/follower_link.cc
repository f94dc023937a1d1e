#include "cluster/follower_link.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lockd {
namespace {

using namespace std::chrono_literals;

std::chrono::milliseconds ms_of(Channel::Time time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
}

}  // namespace

// One channel.

void Channel::start(Time deadline) {
  deadline_ = deadline;
  state_ = State::waiting;
  link_.channels_[id_] = this;
  if (link_.is_up()) open();
}

void Channel::open() {
  opening_.connected_ms = link_.leader_clock_at(connected_);
  link_.send(FrameType::open, id_, to_bytes(opening_));
  state_ = State::open;
  client_.on_channel_open();
}

std::size_t Channel::room() const {
  return state_ == State::open && link_.has_room() ? kChannelWindow - sent_ : 0;
}

void Channel::send(std::string_view bytes) {
  wants_room_ = true;
  if (bytes.empty()) return;
  link_.send(FrameType::bytes, id_, bytes);
  sent_ += bytes.size();
}

void Channel::acknowledge(std::uint64_t bytes) {
  if (state_ == State::open) link_.send(FrameType::taken, id_, number_bytes(bytes));
}

void Channel::end_input(std::uint64_t left) {
  if (state_ == State::open) link_.send(FrameType::end, id_, number_bytes(left));
}

void Channel::close(FrameType how) {
  if (state_ == State::open) link_.send(how, id_);
  if (std::exchange(state_, State::over) != State::over) link_.channels_.erase(id_);
}

void Channel::end(End end) {
  state_ = State::over;
  link_.channels_.erase(id_);
  client_.on_channel_end(end);
}

// All of them.

template <typename Act>
void FollowerLink::for_each(Channel::State state, Act act) {
  std::vector<SessionId> ids;
  for (const auto& [id, channel] : channels_) ids.push_back(id);
  for (const SessionId id : ids) {
    const auto found = channels_.find(id);
    if (found != channels_.end() && found->second->state_ == state) act(*found->second);
  }
}

void FollowerLink::begin(Wire& wire) {
  wire_ = &wire;
  clock_ahead_.reset();
}

void FollowerLink::end(bool gives_up) {
  wire_ = nullptr;
  for_each(Channel::State::open, [](Channel& channel) { channel.end(Channel::End::lost); });
  if (!gives_up) return;
  for_each(Channel::State::waiting, [](Channel& one) { one.end(Channel::End::no_leader); });
}

void FollowerLink::tick(Time now) {
  for_each(Channel::State::waiting, [now](Channel& channel) {
    if (now >= channel.deadline_) channel.end(Channel::End::no_leader);
  });
}

std::optional<std::size_t> FollowerLink::receive(std::string_view unread, Time now) {
  std::string_view rest = unread;
  Frame frame;
  FrameStatus status = FrameStatus::complete;
  while (wire_ != nullptr && (status = take_frame(rest, &frame)) == FrameStatus::complete) {
    take(frame, now);
  }
  if (status == FrameStatus::malformed) return {};
  return unread.size() - rest.size();
}

// A channel that this end has closed may be spoken of until the leader knows.
void FollowerLink::take(const Frame& frame, Time now) {
  if (frame.type == FrameType::clock) {
    const std::chrono::milliseconds clock(number_in(frame.payload).value_or(0));
    const auto ahead = clock - ms_of(now);  // less the time that the frame took
    // A frame that took long says little; but clocks drift, by less than a millisecond in a second.
    const bool is_first =
        !std::exchange(clock_ahead_, std::max(ahead, clock_ahead_.value_or(ahead) - 1ms));
    if (is_first) for_each(Channel::State::waiting, [](Channel& channel) { channel.open(); });
    return;
  }
  const auto found = channels_.find(frame.client);
  if (found == channels_.end() || found->second->state_ != Channel::State::open) return;
  Channel& channel = *found->second;
  switch (frame.type) {
    case FrameType::bytes: return channel.client_.on_channel_bytes(frame.payload);
    case FrameType::taken:
      channel.sent_ -= std::min<std::uint64_t>(number_in(frame.payload).value_or(0), channel.sent_);
      if (std::exchange(channel.wants_room_, false)) channel.client_.on_channel_room();
      return;
    case FrameType::close: return channel.end(Channel::End::closed);
    default: return;
  }
}

void FollowerLink::on_all_sent() {
  for_each(Channel::State::open, [](Channel& channel) {
    if (std::exchange(channel.wants_room_, false)) channel.client_.on_channel_room();
  });
}

std::uint64_t FollowerLink::leader_clock_at(Time time) const {
  const auto clock = ms_of(time) + clock_ahead_.value_or(0ms);
  return static_cast<std::uint64_t>(std::max(clock, 0ms).count());
}

}  // namespace lockd
