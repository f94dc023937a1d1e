#include "server/peer_deadlines.h"

#include <algorithm>
#include <utility>

namespace lockd {

void PeerDeadlines::on_input(Time now, std::uint64_t request) {
  if (std::exchange(request_, request) != request) request_since_ = now;
}

PeerDeadlines::Due PeerDeadlines::check(Time now, const State& state,
                                        const std::function<bool()>& may_be_silent) {
  const bool is_late = !state.is_authenticated && now - opened_ > limits_.auth;
  if (is_late && !state.is_paused) return Due::authentication;  // a pause has an end of its own
  if (!state.is_established || !state.is_open) return Due::nothing;
  // The silence is not the client's while the server does not read or cannot reply.
  if (!state.takes_input) {
    last_reply_ = request_since_ = now;
    return Due::nothing;
  }
  if (is_in_request()) {
    if (now - request_since_ > limits_.read) return Due::request;
  } else if (now - std::max(state.last_input, last_reply_) > limits_.read) {
    if (may_be_silent()) last_owned_ = now;
    if (now - last_owned_ > limits_.read) return Due::next_request;
  }
  if (now - std::max(last_ping_, opened_) < kPingInterval) return Due::nothing;
  last_ping_ = now;
  return Due::ping;
}

bool PeerDeadlines::end_pause(Time now) {
  if (!pause_until_ || now < *pause_until_) return false;
  pause_until_.reset();
  return true;
}

}  // namespace lockd
