// One connection with a server: requests out, replies and signals in, without waiting.
//
// On top of a Socket, it sends the auth token, cuts what comes into lines, and tells replies from
// pushes. Whoever owns it waits as for a Socket and calls advance():
//
//   not ready ──> ready ──> closed            ask() when ready; replies come in the same order
//
// Replies that came before the end can still be taken after it. Used by one thread at a time.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/endpoint.h"
#include "client/socket.h"
#include "lockd/client/connection.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

class LineConnection {
 public:
  using Time = BootClock::time_point;
  enum class ReplySize : unsigned char { short_line, stats };

  // Begins to connect; it must be ready by `deadline`.
  LineConnection(std::shared_ptr<const Endpoint> endpoint, const SocketAddresses& addresses,
                 Time now, Time deadline);

  bool is_ready() const { return state_ == State::ready && !socket_.is_closed(); }
  bool is_closed() const { return socket_.is_closed(); }
  // Why it is closed. What the server said last explains more than that it then closed.
  const Status& failure() const { return verdict_ ? *verdict_ : socket_.failure(); }

  pollfd interest() const { return socket_.interest(); }
  Time deadline() const { return state_ == State::ready ? kNever : deadline_of_opening(); }
  void advance(Time now);

  // Precondition: is_ready().
  void ask(std::string_view lines, ReplySize size = ReplySize::short_line);
  // How many requests wait for a reply that nobody has taken.
  std::size_t outstanding() const { return awaited_.size() + replies_.size(); }
  std::optional<std::string> take_reply();

  // When the server last said anything; before that, when this began.
  Time heard_at() const { return heard_at_; }

  std::optional<Signal> take_signal();
  std::uint64_t signals_dropped() const { return signals_dropped_; }

  void give_up_unacknowledged_after(Duration patience) {
    socket_.give_up_unacknowledged_after(patience);
  }
  void close(Status why) { socket_.close(std::move(why)); }

  // Where it is, to go there again.
  const std::shared_ptr<const Endpoint>& endpoint() const { return endpoint_; }
  const SocketAddresses& addresses() const { return addresses_; }

  // The longest line that is neither statistics nor wrong: a push of 65,536 bytes, and some more.
  static constexpr std::size_t kLineSizeMax = 66 * 1024;

 private:
  enum class State : unsigned char { connecting, handshake, ready };

  Time deadline_of_opening() const { return std::min(socket_.deadline(), deadline_); }
  void greet();
  void take_lines(Time now);
  void take_line(std::string_view line);
  void take_handshake(std::string_view reply);
  void end(Status verdict);
  void keep(Signal signal);
  std::size_t line_size_max() const;

  const std::shared_ptr<const Endpoint> endpoint_;
  const SocketAddresses addresses_;
  const Time deadline_;  // of becoming ready
  Socket socket_;
  State state_ = State::connecting;
  Time heard_at_;
  std::size_t searched_ = 0;  // of the socket's input: there is no LF up to here
  std::deque<ReplySize> awaited_;
  std::deque<std::string> replies_;
  std::deque<Signal> signals_;
  std::size_t signal_bytes_ = 0;
  std::uint64_t signals_dropped_ = 0;
  std::optional<Status> verdict_;  // what it ended by, when that was something the server said
};

// What a Connection is made of, for those who make one.
class Connection::Impl {
 public:
  explicit Impl(std::unique_ptr<LineConnection> opened) : connection(std::move(opened)) {}

  const std::unique_ptr<LineConnection> connection;  // never null
};

}  // namespace lockd::client
