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
      socket_(endpoint_, addresses_, now, deadline),
      heard_at_(now) {}

void LineConnection::advance(Time now) {
  socket_.advance(now);
  if (state_ == State::connecting && socket_.is_open()) greet();
  take_lines(now);
  if (state_ == State::handshake && now >= deadline_) {
    close({Outcome::unreachable,
           endpoint_->address.to_string() + " did not answer to the secret in time"});
  }
}

void LineConnection::greet() {
  state_ = endpoint_->handshake.empty() ? State::ready : State::handshake;
  if (state_ == State::handshake) socket_.send(endpoint_->handshake);
}

void LineConnection::take_lines(Time now) {
  std::string& input = socket_.input();
  std::size_t start = 0;
  while (!verdict_) {
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
  } else if (state_ == State::handshake) {
    take_handshake(line);
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

void LineConnection::take_handshake(std::string_view reply) {
  const Status status = status_of(reply);
  if (status) {
    state_ = State::ready;
  } else if (status.outcome == Outcome::garbled || status.outcome == Outcome::draining) {
    end(status);
  } else {
    // A server that asks for no auth token knows no `auth`: its answer is a plain error.
    end({Outcome::unauthorized, status.outcome == Outcome::unauthorized
                                    ? "the server did not accept the secret"
                                    : "the server refused the secret; it may ask for none"});
  }
}

void LineConnection::end(Status verdict) {
  verdict_ = std::move(verdict);
  close(*verdict_);
}

void LineConnection::ask(std::string_view lines, ReplySize size) {
  awaited_.push_back(size);
  socket_.send(lines);
}

std::optional<std::string> LineConnection::take_reply() {
  if (replies_.empty()) return {};
  std::string reply = std::move(replies_.front());
  replies_.pop_front();
  return reply;
}

}  // namespace lockd::client
