// Where one worker lets clients in by one listening socket: accepting, and what to do when there
// are no descriptors left.
//
// Belongs to one worker, and is touched by its thread only, but before that has started.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>

#include "net/connection.h"
#include "net/listen.h"
#include "net/loop.h"
#include "server/worker_stats.h"

namespace lockd {

class Acceptor {
 public:
  using Admit = std::function<void(Connection::Socket)>;

  // Watches a duplicate of `listening`, which other loops watch too.
  Acceptor(Loop& loop, const ListeningSocket& listening, WorkerStats& stats, Admit admit);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  void open() { accept(); }
  void close();

 private:
  using Listening = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, Loop::Executor>;

  void accept();
  void on_accept(const boost::system::error_code& error, Connection::Socket socket);
  void take(Connection::Socket socket);
  void take_more();
  void refuse_politely();
  void give_up(Connection::Socket socket);
  void note_refusal();

  Loop& loop_;
  WorkerStats& stats_;
  const Admit admit_;
  Listening listening_;
  boost::asio::steady_timer pause_;
  int reserve_ = -1;  // a descriptor to refuse by when there is no other
  Connection::Clock::time_point next_refusal_log_{};
};

// Once a minute at most: what any peer can cause must not fill the log.
bool may_log(Connection::Clock::time_point& next, Connection::Clock::time_point now);

}  // namespace lockd
