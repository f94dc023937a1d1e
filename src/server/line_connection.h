// A line client: its socket and its conversation, together.
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
#include "server/line_session.h"

namespace lockd {

class Worker;

class LineConnection final : public Connection::Handler {
 public:
  // `tls` may be null: plain text.
  LineConnection(Worker& worker, Connection::Socket socket, std::unique_ptr<TlsChannel> tls,
                 boost::asio::ip::address address, LineSession::Service& service, SessionId id);

  void start() { connection_.start(); }
  // Instead of a conversation: it is not served here.
  void turn_away();

  // One of its waits ended; its stats are there; a signal has come for it.
  void settled(const Settled& settled);
  void stats(std::string_view json);
  void push(std::string_view line);

  // The end of the turn: sends what there is once `position` is durable, and closes if the
  // conversation is over.
  void flush(Position position);
  // What it waits for in the worker's list, and what to do when that is durable.
  Position held_until() const { return held_until_; }
  void release();
  // About once a second: whether it has been silent for too long.
  void check_silence(Connection::Clock::time_point now);
  // Every tick, while it needs to be watched. False when that is over.
  bool watch(Connection::Clock::time_point now);
  void drain();
  // At once.
  void cut();

  bool may_be_destroyed() const { return ended_ && connection_.idle(); }
  SessionId id() const { return session_.id(); }
  const boost::asio::ip::address& address() const { return address_; }

  ListHook<LineConnection> touched;  // in this turn
  ListHook<LineConnection> watched;  // it is slow, paused, lingering or refused
  ListHook<LineConnection> held;     // its output waits for the journal
  ListHook<LineConnection> round;    // all whose sessions live, in the order of their checks

 private:
  std::size_t on_input(std::string_view unread) override;
  void on_end_of_input() override;
  void on_broken() override;

  bool is_refused() const { return session_.fate() == LineSession::Fate::refused; }
  void touch();
  void go_on();
  enum class Ender : unsigned char { peer, server };
  void finish(Ender ender);
  void end(Ender ender);
  void send_or_hold();
  bool needs_watching() const { return connection_.needs_watching() || (!ended_ && is_refused()); }
  void have_watched();
  void close_when_over();
  bool refusal_is_over(Connection::Clock::time_point now);
  void log_violation() const;

  Worker& worker_;
  const boost::asio::ip::address address_;
  LineSession session_;
  Connection connection_;
  bool ended_ = false;        // the session is
  bool input_ended_ = false;  // the peer sends no more
  bool finishing_ = false;    // to be closed when its last output is sent
  std::uint32_t pushes_unsent_ = 0;
  Position held_until_ = 0;                     // what the output that is held rests on
  Position rests_on_ = 0;                       // what the output as a whole rests on
  Connection::Clock::time_point last_reply_{};  // to a request that had blocked
  Connection::Clock::time_point close_at_{};    // when it was not let in
};

}  // namespace lockd
