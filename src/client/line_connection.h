// One connection with a server: requests out, replies and signals in, without waiting.
//
// On top of a Socket, it sends the auth token, says who we are, cuts what comes into lines, and
// tells replies from pushes. Whoever owns it waits as for a Socket and calls advance():
//
//   not ready ──> ready ──> closed            ask() when ready; replies come in the same order
//
// The auth token and who we are leave together: they cost one round trip. A server that knows no
// `client` closes the connection at it: it is then connected to again, and never told it again.
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
#include "client/reply.h"
#include "client/socket.h"
#include "lockd/client/connection.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

// What the server has pushed and nobody has taken: the latest, up to a bound.
template <typename Push>
class Inbox {
 public:
  Inbox(std::size_t count_max, std::size_t bytes_max)
      : count_max_(count_max), bytes_max_(bytes_max) {}

  void put(Push push) {
    bytes_ += size_of(push);
    pushes_.push_back(std::move(push));
    for (; pushes_.size() > count_max_ || bytes_ > bytes_max_; ++dropped_) take();
  }
  std::optional<Push> take() {
    if (pushes_.empty()) return {};
    std::optional<Push> push(std::move(pushes_.front()));
    pushes_.pop_front();
    bytes_ -= size_of(*push);
    return push;
  }
  std::uint64_t dropped() const { return dropped_; }

 private:
  static std::size_t size_of(const std::string& event) { return event.size(); }
  static std::size_t size_of(const Signal& signal) {
    return signal.channel.size() + signal.payload.size();
  }
  static std::size_t size_of(const Loss& loss) { return loss.token.size(); }

  const std::size_t count_max_;
  const std::size_t bytes_max_;
  std::deque<Push> pushes_;
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
};

class LineConnection {
 public:
  using Time = BootClock::time_point;
  enum class ReplySize : unsigned char { short_line, stats };

  // Begins to connect; it must be ready by `deadline`.
  LineConnection(std::shared_ptr<const Endpoint> endpoint, const SocketAddresses& addresses,
                 Time now, Time deadline);

  bool is_ready() const { return state_ == State::ready && !socket_->is_closed(); }
  bool is_closed() const { return socket_->is_closed(); }
  // Whether the server has taken who we are, and so knows what came with that. Once it is ready.
  bool is_introduced() const { return introduces_; }
  // Why it is closed. What the server said last explains more than that it then closed.
  const Status& failure() const { return verdict_ ? *verdict_ : socket_->failure(); }

  pollfd interest() const { return socket_->interest(); }
  Time deadline() const { return state_ == State::ready ? kNever : deadline_of_opening(); }
  void advance(Time now);

  // Precondition: is_ready().
  void ask(std::string_view lines, ReplySize size = ReplySize::short_line);
  // How many requests wait for a reply that nobody has taken.
  std::size_t outstanding() const { return awaited_.size() + replies_.size(); }
  std::optional<std::string> take_reply();

  // When the server last said anything; before that, when this began.
  Time heard_at() const { return heard_at_; }

  std::optional<Signal> take_signal() { return signals_.take(); }
  std::uint64_t signals_dropped() const { return signals_.dropped(); }
  std::optional<std::string> take_event() { return events_.take(); }
  // Whether the server has said that what the token names is lost. What it has said of others until
  // now is forgotten.
  std::optional<Loss> take_loss_of(std::string_view token);

  void give_up_unacknowledged_after(Duration patience) {
    socket_->give_up_unacknowledged_after(patience);
  }
  void close(Status why) { socket_->close(std::move(why)); }

  // Where it is, to go there again.
  const std::shared_ptr<const Endpoint>& endpoint() const { return endpoint_; }
  const SocketAddresses& addresses() const { return addresses_; }

  // The longest line that is neither statistics nor wrong: an answer of the API of 1 MiB, and some
  // more.
  static constexpr std::size_t kLineSizeMax = 1025 * 1024;

 private:
  enum class State : unsigned char { connecting, authenticating, introducing, refused, ready };

  static constexpr std::size_t kLossesMax = 64;
  static constexpr std::size_t kLossBytesMax = 64 * 1024;

  Time deadline_of_opening() const { return std::min(socket_->deadline(), deadline_); }
  void greet();
  void connect_again(Time now);
  void take_lines(Time now);
  void take_line(std::string_view line);
  void take_authentication(std::string_view reply);
  void take_introduction(std::string_view reply);
  void end(Status verdict);
  std::size_t line_size_max() const;

  const std::shared_ptr<const Endpoint> endpoint_;
  const SocketAddresses addresses_;
  const Time deadline_;           // of becoming ready
  std::optional<Socket> socket_;  // never none
  State state_ = State::connecting;
  bool introduces_ = false;
  Time heard_at_;
  std::size_t searched_ = 0;  // of the socket's input: there is no LF up to here
  std::deque<ReplySize> awaited_;
  std::deque<std::string> replies_;
  Inbox<Signal> signals_{Connection::kSignalsMax, Connection::kSignalBytesMax};
  Inbox<std::string> events_{SIZE_MAX, Connection::kEventBytesMax};
  Inbox<Loss> losses_{kLossesMax, kLossBytesMax};
  std::optional<Status> verdict_;  // what it ended by, when that was something the server said
};

// What a Connection is made of, for those who make one.
class Connection::Impl {
 public:
  explicit Impl(std::unique_ptr<LineConnection> opened) : connection(std::move(opened)) {}

  const std::unique_ptr<LineConnection> connection;  // never null
};

}  // namespace lockd::client
