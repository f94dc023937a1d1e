// One loop thread and the connections that live on it.
//
// Everything here is touched by that thread only, but for settled(), deliver(), and what says so.
// Other threads leave what they have in the inbox, and knock once.
#pragma once

#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/list.h"
#include "base/mutex.h"
#include "base/secret.h"
#include "lockd/batch.h"
#include "net/loop.h"
#include "server/line_connection.h"
#include "server/shared.h"

namespace lockd {

class Worker final : public Listener, public Mailbox {
 public:
  // Watches a duplicate of `listening`.
  Worker(Shared& shared, int listening, bool ipv6);
  ~Worker();

  void start();  // its thread
  void join() { thread_.join(); }

  // Any thread. No new connections; what blocks is answered; the rest may finish.
  void drain();
  // Any thread. Closes what is left and ends the thread.
  void stop();

  // Any thread. More of what was held back may be sent.
  void on_durable();
  // Any thread, but one at a time: whether the loop has turned since the last call.
  bool has_turned() { return turned_.exchange(false, std::memory_order_relaxed); }

  // For its connections.
  Loop& loop() { return loop_; }
  const Options& options() const { return shared_.options; }
  using Touched = List<LineConnection, &LineConnection::touched>;
  Touched& touched() { return touched_; }
  using Watched = List<LineConnection, &LineConnection::watched>;
  Watched& watched() { return watched_; }
  using Held = List<LineConnection, &LineConnection::held>;
  Held& held() { return held_; }
  bool is_durable(Position position) const { return shared_.engine.is_durable(position); }
  bool is_draining() const { return service_.draining; }
  bool keeps_what_it_grants() const { return shared_.journal != nullptr; }
  void ask_stats(SessionId id);
  void ended(LineConnection& connection);

 private:
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, Loop::Executor>;

  // Something from another thread, for one connection.
  struct Delivery {
    SessionId id;
    enum { wait, stats, signal } what;
    Settled settled{};
    std::string json{};
    std::shared_ptr<const Signal> sig{};
  };

  void settled(const Settled& settled) noexcept override EXCLUDES(inbox_mutex_);
  void deliver(std::span<const std::uint64_t> subscribers,
               const std::shared_ptr<const Signal>& signal) noexcept override
      EXCLUDES(inbox_mutex_);
  void leave(Delivery delivery) EXCLUDES(inbox_mutex_);
  bool take_inbox() EXCLUDES(inbox_mutex_);

  void accept();
  void on_accept(const boost::system::error_code& error, Connection::Socket socket);
  void take(Connection::Socket socket);
  void take_more();
  void admit(Connection::Socket socket);
  void refuse_politely();
  void give_up(Connection::Socket socket);
  void log_refusal();
  void log_protected(const boost::asio::ip::address& peer);
  void end_turn();
  void release_held();
  void tick();

  Shared& shared_;
  Loop loop_;
  Acceptor acceptor_;
  boost::asio::steady_timer accept_pause_;
  Connection::Clock::time_point next_protected_log_{};
  Connection::Clock::time_point next_refusal_log_{};
  int reserve_ = -1;  // a descriptor to refuse by when there is no other
  Batch batch_;
  TokenSource secrets_;
  LineSession::Service service_;
  boost::unordered_flat_map<SessionId, std::unique_ptr<LineConnection>> connections_;
  std::vector<std::unique_ptr<LineConnection>> leaving_;  // ended; their sockets still linger
  Touched touched_;
  Watched watched_;
  Held held_;                               // in the order of their positions
  std::atomic<bool> wants_durable_{false};  // held_ is not empty
  List<LineConnection, &LineConnection::round> round_;
  std::thread thread_;
  std::atomic<bool> turned_{false};

  Mutex inbox_mutex_;
  std::vector<Delivery> inbox_ GUARDED_BY(inbox_mutex_);
};

}  // namespace lockd
