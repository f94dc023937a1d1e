#include "net/connection.h"

#include <poll.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <cstring>
#include <utility>

namespace lockd {
namespace {

using boost::system::error_code;

// How much of what was left unread is offered at once: more than the longest request.
constexpr std::size_t kInputPerTurn = 128 * 1024;

// A buffer that has grown goes back when it is empty.
constexpr std::size_t kKeptCapacity = 1024;

void give_back(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kKeptCapacity) buffer.shrink_to_fit();
}

}  // namespace

Connection::Connection(Loop& loop, Socket socket, Handler& handler)
    : loop_(loop), socket_(std::move(socket)), handler_(handler), last_input_(Clock::now()) {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  socket_.set_option(boost::asio::socket_base::keep_alive(true), ignored);
}

void Connection::start() { read(); }

bool Connection::wants_input() const {
  if (state_ == State::lingering) return true;
  return state_ == State::open && unread_size() < kUnreadMax && unsent_size() < kUnsentMax;
}

void Connection::read() {
  if (reading_ || input_ended_ || !wants_input()) return;
  reading_ = true;
  ++operations_;
  socket_.async_read_some(boost::asio::buffer(small_),
                          [this](const error_code& error, std::size_t size) {
                            reading_ = false;
                            --operations_;
                            if (state_ == State::closed) return;
                            if (error == boost::asio::error::eof) return end_input();
                            if (error) return break_off();
                            on_read(size);
                            read();
                          });
}

void Connection::on_read(std::size_t size) {
  last_input_ = loop_.turn_time();
  if (size < small_.size()) return take({small_.data(), size});
  // There is likely to be more: one read of all of it, behind what came first.
  auto& scratch = loop_.scratch();
  std::memcpy(scratch.data(), small_.data(), size);
  error_code error;
  size +=
      socket_.read_some(boost::asio::buffer(scratch.data() + size, scratch.size() - size), error);
  take({scratch.data(), size});  // an error comes again with the next read
}

void Connection::take(std::string_view bytes) {
  if (state_ == State::lingering) return;
  if (unread_size() > 0) {
    input_.append(bytes);
    return resume_input();
  }
  const std::size_t consumed = handler_.on_input(bytes);
  if (state_ == State::open && consumed < bytes.size()) input_.assign(bytes.substr(consumed));
}

void Connection::resume_input() {
  if (state_ != State::open) return;
  if (unsent_size() >= kUnsentMax) {
    held_back_ = unread_size() > 0;  // a peer that does not take its replies is given no more
    return;
  }
  if (unread_size() > 0) {
    const std::string_view unread = std::string_view(input_).substr(consumed_, kInputPerTurn);
    const bool all = unread.size() == unread_size();
    const std::size_t consumed = handler_.on_input(unread);
    if (state_ != State::open) return;
    consumed_ += consumed;
    if (consumed_ == input_.size()) {
      give_back(input_);
      consumed_ = 0;
    } else if (consumed_ > kInputPerTurn) {
      input_.erase(0, consumed_);  // not at every request: it moves all that is behind
      consumed_ = 0;
    }
    if (!all && consumed > 0) resume_next_turn();
  }
  read();
}

// So that one connection's backlog does not keep the loop from the others.
void Connection::resume_next_turn() {
  resuming_ = true;
  ++operations_;
  loop_.post([this] {
    resuming_ = false;
    --operations_;
    resume_input();
  });
}

void Connection::end_input() {
  input_ended_ = true;
  if (state_ == State::lingering) return close();
  handler_.on_end_of_input();
}

void Connection::break_off() {
  const bool tell = state_ == State::open;
  close();
  if (tell) handler_.on_broken();
}

void Connection::flush() {
  if (state_ == State::closed || waiting_to_write_) return;
  if (unsent_size() > 0) {
    error_code error;
    sent_ += socket_.write_some(boost::asio::buffer(output_.data() + sent_, output_.size() - sent_),
                                error);
    if (error && error != boost::asio::error::would_block) return break_off();
  }
  if (unsent_size() > 0) return wait_to_write();
  sent_ = 0;
  give_back(output_);
  if (state_ == State::lingering) return say_goodbye();
  if (std::exchange(held_back_, false)) resume_next_turn();
  read();
}

// All is sent: now the end. Input is drained for a while, not for ever.
void Connection::say_goodbye() {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  if (input_ended_) return close();
  if (linger_until_ == Clock::time_point{}) linger_until_ = Clock::now() + linger_;
  read();
}

void Connection::wait_to_write() {
  if (sent_ > kUnsentMax / 2) {
    output_.erase(0, sent_);
    sent_ = 0;
  }
  waiting_to_write_ = true;
  stalled_since_ = loop_.turn_time();
  ++operations_;
  socket_.async_wait(Socket::wait_write, [this](const error_code& error) {
    waiting_to_write_ = false;
    --operations_;
    if (state_ == State::closed) return;
    if (error) return break_off();
    flush();
  });
}

void Connection::close_gently(std::chrono::milliseconds linger) {
  if (state_ != State::open) return;
  state_ = State::lingering;
  linger_ = linger;
  give_back(input_);
  consumed_ = 0;
  flush();
}

void Connection::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  error_code ignored;
  socket_.close(ignored);
}

void Connection::check(Clock::time_point now) {
  if (state_ == State::lingering && linger_until_ != Clock::time_point{} && now >= linger_until_) {
    return close();
  }
  if (!input_is_full()) return;
  // Nothing is read, so a peer that leaves must be looked for.
  pollfd descriptor{socket_.native_handle(), POLLRDHUP, 0};
  if (::poll(&descriptor, 1, 0) > 0) end_input();
}

}  // namespace lockd
