// One loop thread: its clients' sockets, and the SessionHost that serves them.
//
// Everything here is touched by that thread only, but for what says so.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <thread>

#include "base/list.h"
#include "base/secret.h"
#include "net/loop.h"
#include "server/client_connection.h"
#include "server/server_context.h"
#include "server/session/session_host.h"

namespace lockd {

class Worker {
 public:
  explicit Worker(ServerContext& server);
  ~Worker();

  void start();  // its thread
  void join() { thread_.join(); }

  // Any thread. A client has come.
  void let_in(Protocol protocol, Descriptor socket, const boost::asio::ip::tcp::endpoint& peer);
  // Any thread. See ClientConnection.
  void make_room(SessionId unproven);
  // Any thread. How many are here or on their way.
  std::size_t connections() const { return connections_.load(std::memory_order_relaxed); }

  // Any thread. No new line connections, and in a cluster none at all; what blocks is answered; who
  // holds nothing is closed.
  void drain();
  // Any thread. No HTTP any more, but for answers that are under way.
  void close_http();
  // Any thread. Closes what is left and ends the thread.
  void stop();

  // Any thread. More of what was corked may be sent.
  void on_durable() { host_.on_durable(); }
  // Any thread, but one at a time: whether the loop has turned since the last call.
  bool has_turned() { return turned_.exchange(false, std::memory_order_relaxed); }

  // For its connections.
  Loop& loop() { return loop_; }
  SessionHost& host() { return host_; }
  const Options& options() const { return server_.options; }
  bool has_journal() const { return server_.journal != nullptr; }
  WorkerStats& stats() { return stats_; }
  const Access& access() const { return server_.access; }
  Admission& admission() { return server_.admission; }
  BufferLedger& buffers() { return buffers_; }
  FailedAttempts& failed_attempts() { return server_.failed_attempts; }
  ServerHistory& history() { return server_.history; }
  using Watched = List<ClientConnection, &ClientConnection::watched>;
  Watched& watched() { return watched_; }
  using Round = List<ClientConnection, &ClientConnection::round>;
  Round& round() { return round_; }
  void gone(ClientConnection& connection, Protocol protocol,
            const boost::asio::ip::address& address);

 private:
  HostSetup host_setup();
  void admit(Protocol protocol, Descriptor socket, const boost::asio::ip::tcp::endpoint& peer);
  void record_refusal(Protocol protocol, const boost::asio::ip::tcp::endpoint& peer);
  void log_protected(Protocol protocol, const boost::asio::ip::address& peer);
  void tick();
  void look_at_permits();
  void cut_largest();

  ServerContext& server_;
  WorkerStats& stats_;
  Loop loop_;
  const std::unique_ptr<LeaderGate> gate_;
  bool takes_line_ = true;  // those who come
  bool takes_http_ = true;
  std::uint64_t permits_ = 0;  // the generation that its sessions were looked at by
  Connection::Clock::time_point next_protected_log_{};
  Watched watched_;
  Round round_;
  TokenSource secrets_;
  BufferLedger buffers_;
  SessionHost host_;  // its connections use all of the above
  std::thread thread_;
  std::atomic<bool> turned_{false};
  std::atomic<std::size_t> connections_{0};
};

}  // namespace lockd
