// One socket's bytes: read into the loop's memory, written once per turn.
//
// An idle connection keeps no buffer: what it has not consumed, and what the peer has not taken, is
// kept in strings that go back when they are empty. With a TLS channel the handler sees and writes
// plain text, as without one. Belongs to one loop, and is touched by its thread only. Knows nothing
// of what the bytes mean: see Handler.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "net/loop.h"
#include "net/tls_channel.h"

namespace lockd {

class Connection final : private Loop::Watched, private Loop::SlowWork {
 public:
  using Clock = std::chrono::steady_clock;

  // What the bytes are for. Called on the loop's thread.
  class Handler {
   public:
    // TLS has shaken hands; nothing was taken in before. Never called where there is none.
    virtual void on_established() = 0;
    // Takes what it can of `unread`, or what is enough for one turn, and returns how much that was.
    virtual std::size_t on_input(std::string_view unread) = 0;
    // The peer has taken all that could be sent, which it had not done at once.
    virtual void on_all_sent() = 0;
    // The peer sends no more: it has closed, or half-closed.
    virtual void on_end_of_input() = 0;
    // Nothing more can be read or written. The last call; possibly from within flush().
    virtual void on_broken() = 0;

   protected:
    ~Handler() = default;
  };

  // A connected socket that does not block. `tls` may be null: plain text.
  Connection(Loop& loop, Descriptor socket, std::unique_ptr<TlsChannel> tls, Handler& handler);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  // Its operations must have ended: see idle().
  ~Connection() { close(); }

  // A peer that is there and takes nothing is not given up. A dead one with output that it has not
  // acknowledged is then found only by the system's own patience, a quarter of an hour.
  void bear_with_stalled_peer();
  // A peer whose machine acknowledges nothing for so long is given up, also while there is nothing
  // to acknowledge but probes.
  void give_up_after(std::chrono::seconds silence);
  // Begins to read.
  void start();
  // Likewise, as the end that connects: the socket may be about to, and TLS speaks first.
  void start_connecting();
  // Tries what was left unread again: the handler can take more now.
  void resume_input();
  // From on_input(), which takes nothing: no more is read, and what is unread is offered again,
  // when some of the output has been sent.
  void hold_back_input() { held_back_ = true; }

  // What is appended here is sent by flush(), or by cork() and uncork().
  std::string& output() { return output_; }
  // One write of what there is; the rest follows when the peer takes it.
  void flush();
  // For output that may not be sent yet: cork() marks what there is, uncork() sends what was marked
  // and leaves what was appended since. Whether there is such a rest.
  void cork() { marked_ = output_.size(); }
  bool uncork();
  // How much was appended to the output since the beginning; and takes back what was appended from
  // there on, unless it may be sent already.
  std::uint64_t bytes_written() const { return dropped_ + output_.size(); }
  void roll_back_output(std::uint64_t from);

  // Sends what is left, then the end; reads and drops what comes for `linger` after that, so that
  // the last bytes are not lost to a reset; then closes. No handler is called any more. Nothing can
  // be said before TLS is established.
  void close_gently(std::chrono::milliseconds linger);
  // At once. No handler is called any more.
  void close();
  // Whether check() has to be called now and then: it notices when a close has lingered for long
  // enough. And whether the peer should be looked at: it is slow, or nothing is read from it.
  bool needs_watching() const {
    return state_ == State::lingering ||
           (state_ == State::open && (waiting_to_write_ || input_is_full()));
  }
  void check(Clock::time_point now);

  // Nothing is read until the handler takes more: a peer that leaves must be looked for.
  bool input_is_full() const {
    return state_ == State::open && !input_ended_ && unread_size() >= unread_max_;
  }
  // How much is read of what the handler does not take: kUnreadMax, or this from now on.
  void limit_unread(std::size_t bytes_max) { unread_max_ = bytes_max; }
  // Whether the peer is known to have closed or half-closed, here or by the system: asks it. What
  // it sent before may still be unread.
  bool peer_has_left() const;

  bool closed() const { return state_ == State::closed; }
  // Closed, and no operation of it is under way: it may be destroyed.
  bool idle() const { return closed() && operations_ == 0; }
  std::size_t unread_size() const { return input_.size() - consumed_; }
  std::size_t unsent_size() const {
    return output_.size() - sent_ + (tls_ == nullptr ? 0 : tls_->sealed().size());
  }
  // The memory of both, but for the little that an idle connection keeps.
  std::size_t buffered() const;
  // Unread input will be offered to the handler again, by itself.
  bool input_pending() const { return unread_size() > 0 && (held_back_ || resuming_); }
  // Whether what the peer says is heard now: not while it has yet to take much of its output.
  bool takes_input() const { return wants_input() && !input_pending(); }
  // Whether plain text can pass: always, or once TLS has shaken hands.
  bool established() const { return tls_ == nullptr || tls_->established(); }
  // What the peer's certificate says of whose it is. Precondition: TLS has shaken hands.
  CertificateNames peer_names() const { return tls_->peer_names(); }
  // See TlsChannel; empty: there is no TLS. Likewise.
  std::string tls_binding() const { return tls_ == nullptr ? "" : tls_->binding(); }
  // Why TLS could not go on; empty if it could.
  std::string_view tls_error() const { return tls_ == nullptr ? "" : tls_->error(); }
  // When it was opened; when bytes last came in; since when output has been waiting for the peer.
  Clock::time_point opened() const { return opened_; }
  Clock::time_point last_input() const { return last_input_; }
  bool waits_for_peer() const { return waiting_to_write_; }
  bool stalled(Clock::time_point now, std::chrono::nanoseconds limit) const {
    return waiting_to_write_ && now - stalled_since_ > limit;
  }

  static constexpr std::size_t kUnreadMax = 1024 * 1024;
  static constexpr std::size_t kUnsentMax = 1024 * 1024;

 private:
  enum class State : unsigned char { open, lingering, closed };

  void on_ready(unsigned events) override;
  void do_slow_work() override;
  bool can_read() const { return readable_ && !input_ended_ && wants_input(); }
  void read();
  void read_now();
  void read_next_turn();
  void receive(std::string_view bytes);
  void open_received();
  void take(std::string_view bytes);
  void send(std::size_t size);
  bool seal();
  void drop_output(std::size_t size);
  void write_out();
  void drop_sent();
  void resume_next_turn();
  void end_input();
  void break_off();
  void say_goodbye();
  void wait_to_write();
  // What goes to the wire. Of plain text only the first allowed_ bytes may.
  std::string& wire() { return tls_ == nullptr ? output_ : tls_->sealed(); }
  std::size_t wire_size() const { return tls_ == nullptr ? allowed_ : tls_->sealed().size(); }
  bool said_goodbye() const { return linger_until_ != Clock::time_point{}; }
  bool wants_input() const;

  Loop& loop_;
  Descriptor socket_;
  const std::unique_ptr<TlsChannel> tls_;
  Handler& handler_;
  State state_ = State::open;
  bool readable_ = false;  // as far as is known
  bool hung_up_ = false;   // the end is among what can be read
  bool reads_next_turn_ = false;
  bool input_ended_ = false;
  bool waiting_to_write_ = false;
  bool held_back_ = false;  // unread input waits until output is sent
  bool resuming_ = false;   // it will be offered in a later turn
  int operations_ = 0;
  std::size_t unread_max_ = kUnreadMax;
  std::size_t consumed_ = 0;   // of input_
  std::size_t sent_ = 0;       // of wire()
  std::size_t allowed_ = 0;    // of output_, to be sent
  std::size_t marked_ = 0;     // of output_, by cork()
  std::uint64_t dropped_ = 0;  // from the front of output_, since the beginning
  std::string input_;
  std::string output_;
  const Clock::time_point opened_;
  Clock::time_point last_input_;
  Clock::time_point stalled_since_;
  Clock::time_point linger_until_{};  // set when all is sent
  std::chrono::milliseconds linger_{};
};

}  // namespace lockd
