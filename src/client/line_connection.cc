#include "client/line_connection.h"

#include <algorithm>
#include <utility>

#include "client/reply.h"

namespace lockd::client {

LineConnection::LineConnection(std::shared_ptr<const Endpoint> endpoint,
                               const SocketAddresses& addresses, Time now, Time deadline)
    : endpoint_(std::move(endpoint)),
      addresses_(addresses),
      deadline_(deadline),
      socket_(std::in_place, endpoint_, addresses_, now, deadline),
      heard_at_(now) {}

void LineConnection::advance(Time now) {
  socket_->advance(now);
  if (state_ == State::connecting && socket_->is_open()) greet();
  take_lines(now);
  if (state_ == State::refused) connect_again(now);
  const bool shakes_hands = state_ == State::authenticating || state_ == State::introducing;
  if (shakes_hands && now >= deadline_) {
    close({Outcome::unreachable, endpoint_->address.to_string() + " did not answer in time"});
  }
}

// In one piece, so that a server that refuses the first has read all of it, and ends the connection
// in order: a reset could overtake its answer.
void LineConnection::greet() {
  const auto handshake = endpoint_->handshake();
  if (!handshake) return end(handshake);
  introduces_ = !endpoint_->introduction.empty() && endpoint_->takes_introduction;
  const std::string said = *handshake + (introduces_ ? endpoint_->introduction : "");
  state_ = handshake->empty() ? State::introducing : State::authenticating;
  if (said.empty()) state_ = State::ready;
  socket_->send(said);
}

void LineConnection::connect_again(Time now) {
  state_ = State::connecting;
  searched_ = 0;
  socket_.emplace(endpoint_, addresses_, now, deadline_);
}

void LineConnection::take_lines(Time now) {
  std::string& input = socket_->input();
  std::size_t start = 0;
  while (!verdict_ && state_ != State::refused) {
    const std::size_t end = input.find('\n', std::max(start, searched_));
    if (end == std::string::npos) break;
    std::string_view line(input.data() + start, end - start);
    while (line.ends_with('\r')) line.remove_suffix(1);
    start = end + 1;
    heard_at_ = now;
    take_line(line);
  }
  input.erase(0, start);
  searched_ = input.size();
  if (input.size() > line_size_max()) {
    end({Outcome::garbled, "a line of more than " + std::to_string(line_size_max()) + " bytes"});
  }
}

std::size_t LineConnection::line_size_max() const {
  const bool stats = !awaited_.empty() && awaited_.front() == ReplySize::stats;
  return stats ? Connection::kStatsSizeMax : kLineSizeMax;
}

void LineConnection::take_line(std::string_view line) {
  if (line.size() > line_size_max()) {
    end({Outcome::garbled, "a line of " + std::to_string(line.size()) + " bytes"});
  } else if (is_signal(line)) {
    signals_.put(signal_of(line));
  } else if (is_event(line)) {
    events_.put(event_of(line));
  } else if (is_loss(line)) {
    losses_.put(loss_of(line));
  } else if (state_ == State::authenticating) {
    take_authentication(line);
  } else if (state_ == State::introducing) {
    take_introduction(line);
  } else if (!awaited_.empty()) {
    awaited_.pop_front();
    replies_.emplace_back(line);
  } else if (const Status unasked = status_of(line); unasked.outcome == Outcome::garbled) {
    end(unasked);
  } else {
    // As a server says that is about to close: we were silent for too long, or it stops.
    end({Outcome::disconnected, "the server ended the connection: " + describe(unasked)});
  }
}

void LineConnection::take_authentication(std::string_view reply) {
  const Status status = status_of(reply);
  if (status) {
    state_ = introduces_ ? State::introducing : State::ready;
  } else if (status.outcome == Outcome::garbled || status.outcome == Outcome::draining) {
    end(status);
  } else {
    // A server that asks for no auth token knows no `auth`: its answer is a plain error.
    end({Outcome::unauthorized, status.outcome == Outcome::unauthorized
                                    ? "the server did not accept the auth token"
                                    : "the server refused the auth token; it may ask for none"});
  }
}

void LineConnection::take_introduction(std::string_view reply) {
  const Status status = status_of(reply);
  if (status.outcome == Outcome::refused) {
    endpoint_->takes_introduction = false;
    state_ = State::refused;
  } else if (status.outcome == Outcome::garbled || status.outcome == Outcome::draining) {
    end(status);
  } else if (status.outcome == Outcome::unauthorized) {
    end({Outcome::unauthorized,
         "the server asks for an auth token, or serves its own machine only"});
  } else {
    state_ = State::ready;  // whatever it made of it
  }
}

void LineConnection::end(Status verdict) {
  verdict_ = std::move(verdict);
  close(*verdict_);
}

void LineConnection::ask(std::string_view lines, ReplySize size) {
  awaited_.push_back(size);
  socket_->send(lines);
}

std::optional<std::string> LineConnection::take_reply() {
  if (replies_.empty()) return {};
  std::string reply = std::move(replies_.front());
  replies_.pop_front();
  return reply;
}

std::optional<Loss> LineConnection::take_loss_of(std::string_view token) {
  while (auto loss = losses_.take()) {
    if (loss->token == token) return loss;
  }
  return {};
}

}  // namespace lockd::client
