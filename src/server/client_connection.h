// A client: its socket and its session, together, whatever the protocol.
//
// Belongs to one worker, and is touched by its thread only.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/list.h"
#include "net/connection.h"
#include "server/session/server_session.h"

namespace lockd {

class Worker;

class ClientConnection final : public Connection::Handler {
 public:
  // `tls` may be null: plain text.
  ClientConnection(Worker& worker, Connection::Socket socket, std::unique_ptr<TlsChannel> tls,
                   boost::asio::ip::address address, std::unique_ptr<ServerSession> session);

  void start() { connection_.start(); }
  // Instead of a conversation: it is not served here.
  void turn_away();

  // One of its waits ended; its report is there; a signal has come for it; something occurred that
  // it watches, or so much of that was missed.
  void on_wait_done(const WaitResult& settled);
  void report(const ReportResult& result);
  void push(const Signal& signal);
  void on_key_events(const KeyEventJson& occurrence);
  void missed(std::uint64_t count) { session_->missed(count); }

  // Before a grant is told: true when its peer has gone, which nobody knew yet, and the grant would
  // be nobody's. The conversation is over then.
  bool turns_out_gone();

  // The end of the turn: sends what there is once `position` is durable, and closes if the
  // conversation is over.
  void flush(Position position);
  // What it waits for in the worker's list, and what to do when that is durable.
  Position held_until() const { return held_until_; }
  void release();
  // About once a second: whether it has been silent for too long, or should say something itself.
  void check_silence(Connection::Clock::time_point now);
  // Every tick, while it needs to be watched. False when that is over.
  bool watch(Connection::Clock::time_point now);
  void drain();
  // At once.
  void cut();
  // At once, if it waits for an answer; but what it holds it keeps.
  void send_elsewhere();

  bool may_be_destroyed() const { return ended_ && connection_.idle(); }
  SessionId id() const { return session_->id(); }
  const boost::asio::ip::address& address() const { return address_; }

  ListHook<ClientConnection> touched;  // in this turn
  ListHook<ClientConnection> watched;  // it is slow, paused, lingering or refused
  ListHook<ClientConnection> held;     // its output waits for the journal
  ListHook<ClientConnection> round;  // all whose conversations go on, in the order of their checks

 private:
  std::size_t on_input(std::string_view unread) override;
  void on_end_of_input() override;
  void on_broken() override;

  bool has_half_a_request() const {
    return connection_.unread_size() > 0 && !connection_.input_pending() && !session_->blocked();
  }
  bool is_refused() const { return session_->fate() == ServerSession::Fate::refused; }
  void touch();
  void go_on();
  enum class Ender : unsigned char { peer, server, journal };
  void finish(Ender ender);
  void end(Ender ender);
  void send_or_hold();
  bool needs_watching() const { return connection_.needs_watching() || (!ended_ && is_refused()); }
  void have_watched();
  void close_when_over();
  bool refusal_is_over(Connection::Clock::time_point now);
  void note_violation();

  Worker& worker_;
  const boost::asio::ip::address address_;
  const std::unique_ptr<ServerSession> session_;
  Connection connection_;
  bool ended_ = false;        // the conversation has
  bool input_ended_ = false;  // the peer sends no more
  bool finishing_ = false;    // to be closed when its last output is sent
  std::uint32_t pushes_unsent_ = 0;
  std::uint64_t request_ = 0;                      // that is under way, by number
  Position held_until_ = 0;                        // what the output that is held rests on
  Position rests_on_ = 0;                          // what the output as a whole rests on
  Connection::Clock::time_point last_reply_{};     // to a request that had blocked
  Connection::Clock::time_point request_since_{};  // when the request that is under way began
  Connection::Clock::time_point last_ping_{};
  Connection::Clock::time_point close_at_{};  // when it was not let in
};

}  // namespace lockd
