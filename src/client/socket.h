// One connection's bytes, plain or over TLS, without waiting for anything.
//
// Whoever owns it waits until its descriptor is ready, or its deadline has come, and calls
// advance(), which does what can be done now:
//
//   connecting ──> shaking hands ──> open ──> closed
//   (each address     (TLS only)              (failure() says why)
//    for its share of the time)
//
// Used by one thread at a time.
#pragma once

#include <poll.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "client/endpoint.h"
#include "client/stoppable_wait.h"
#include "lockd/client/outcome.h"
#include "net/tls_channel.h"

namespace lockd::client {

// Small messages go out at once, and a peer that has vanished is noticed within half a minute, also
// while nothing is said.
void tune(int socket);

class Socket {
 public:
  using Time = BootClock::time_point;

  // Begins to connect; it must be open by `deadline`.
  Socket(std::shared_ptr<const Endpoint> endpoint, SocketAddresses addresses, Time now,
         Time deadline);
  ~Socket() { drop(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool is_open() const { return state_ == State::open; }
  bool is_closed() const { return state_ == State::closed; }
  // Why it is closed.
  const Status& failure() const { return failure_; }

  // What to wait for: the descriptor, or the deadline if that comes first.
  pollfd interest() const;
  Time deadline() const { return state_ == State::connecting ? attempt_deadline_ : deadline_; }
  void advance(Time now);

  // What the peer has sent and nobody has taken away. Grows by at most kReadMax with one advance().
  std::string& input() { return input_; }
  // Sends what it can at once, and the rest when the peer takes it. Precondition: is_open().
  void send(std::string_view bytes);

  // A peer that does not acknowledge what was sent for this long is given up: it, or the way to it,
  // is dead, not slow. Precondition: is_open().
  void give_up_unacknowledged_after(Duration patience);

  // Ends it, and says so to the peer. The first reason counts.
  void close(Status why);

  static constexpr std::size_t kReadMax = 256 * 1024;

 private:
  enum class State : unsigned char { connecting, shaking_hands, open, closed };

  void connect_next(Time now);
  void finish_connecting(Time now);
  void start_tls();
  void read();
  bool take_in(std::string_view bytes);
  void write();
  void fail_tls();
  void lose_peer(int error);
  void drop();
  std::string name() const { return endpoint_->address.to_string(); }
  std::string& outgoing() { return tls_ == nullptr ? output_ : tls_->sealed(); }

  const std::shared_ptr<const Endpoint> endpoint_;
  const SocketAddresses addresses_;
  std::size_t next_address_ = 0;
  Time deadline_;          // of becoming open; then never
  Time attempt_deadline_;  // of the address that is being tried
  State state_ = State::connecting;
  int socket_ = -1;
  int connect_error_ = 0;  // of the last address
  std::unique_ptr<TlsChannel> tls_;
  bool heard_ = false;  // anything
  std::string input_;
  std::string output_;  // plain text
  Status failure_;
};

}  // namespace lockd::client
