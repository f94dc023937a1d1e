// One loop thread and the connections that live on it.
//
// Everything here is touched by that thread only, but for settled(), deliver(), and what says so.
// Other threads leave what they have in the inbox, and knock once.
#pragma once

#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/list.h"
#include "base/mutex.h"
#include "base/secret.h"
#include "lockd/batch.h"
#include "net/loop.h"
#include "server/acceptor.h"
#include "server/client_connection.h"
#include "server/server_context.h"
#include "server/session/server_session.h"

namespace lockd {

// The sockets that the workers of a server listen on; one that is not there has no descriptor.
struct Ports {
  ListeningSocket line;
  ListeningSocket http;
};

class Worker final : public Listener, public Mailbox, private Desk {
 public:
  // Watches duplicates of the sockets.
  Worker(ServerContext& shared, const Ports& ports);
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
  const Options& options() const { return server_.options; }
  using Touched = List<ClientConnection, &ClientConnection::touched>;
  Touched& touched() { return touched_; }
  using Watched = List<ClientConnection, &ClientConnection::watched>;
  Watched& watched() { return watched_; }
  // Its output is to be released when what it rests on is durable.
  void hold(ClientConnection& connection);
  bool is_durable(Position position) const { return server_.engine.is_durable(position); }
  bool is_draining() const { return context_.draining; }
  bool keeps_what_it_grants() const { return server_.journal != nullptr; }
  WorkerStats& stats() { return stats_; }
  void ended(ClientConnection& connection);

 private:
  // A wait of a client that has gone: if it ends with a grant, that is taken back.
  struct Abandoned {
    Kind kind;
    std::string key;
    std::string holder;
  };

  // Of what happens to keys, from a place in the feed on.
  struct Watcher {
    SessionId id;
    std::uint64_t from;
  };

  // Something from another thread: a wait, a report, or a signal for all who listen to it.
  struct Delivery {
    enum { wait, report, signal } what;
    SessionId id = 0;
    WaitResult settled{};
    ReportResult result{};
    std::shared_ptr<const Signal> sig{};
    std::vector<SessionId> listeners{};
  };

  void on_wait_done(const WaitResult& settled) noexcept override EXCLUDES(inbox_mutex_);
  void deliver(std::span<const std::uint64_t> subscribers,
               const std::shared_ptr<const Signal>& signal) noexcept override
      EXCLUDES(inbox_mutex_);
  void leave(Delivery delivery) EXCLUDES(inbox_mutex_);
  bool take_inbox() EXCLUDES(inbox_mutex_);
  ClientConnection* find(SessionId id) const;

  // Of Desk.
  void ask(SessionId id, ReportRequest report) override;
  void watch_events(SessionId id) override;
  void abandon(SessionId id, Kind kind, std::string_view key, std::string_view holder) override;

  void settle(const WaitResult& settled);
  void take_back(const WaitResult& settled);

  enum class Protocol : std::uint8_t { line, http };
  void admit(Protocol protocol, Connection::Socket socket);
  void show_events();
  void log_protected(Protocol protocol, const boost::asio::ip::address& peer);
  std::vector<ClientConnection*> all_connections() const;
  void end_turn();
  void release_held();
  void send_waiting_elsewhere();
  void tick();

  ServerContext& server_;
  WorkerStats& stats_;
  Loop loop_;
  std::optional<Acceptor> line_acceptor_;
  std::optional<Acceptor> http_acceptor_;
  Connection::Clock::time_point next_protected_log_{};
  Batch batch_;
  TokenSource secrets_;
  SessionContext context_;
  boost::unordered_flat_map<SessionId, std::unique_ptr<ClientConnection>> connections_;
  std::vector<std::unique_ptr<ClientConnection>> leaving_;  // ended; their sockets still linger
  boost::unordered_flat_map<SessionId, Abandoned> abandoned_;
  std::vector<Watcher> watchers_;
  std::uint64_t feed_place_ = 0;  // how far they have been told
  Touched touched_;
  Watched watched_;
  List<ClientConnection, &ClientConnection::held> held_;  // in the order of their positions
  std::atomic<bool> wants_durable_{false};                // held_ is not empty
  List<ClientConnection, &ClientConnection::round> round_;
  std::thread thread_;
  std::atomic<bool> turned_{false};

  Mutex inbox_mutex_;
  std::vector<Delivery> inbox_ GUARDED_BY(inbox_mutex_);
};

}  // namespace lockd
