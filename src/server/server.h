// The server: its listening sockets, its workers, and how it stops.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "net/listen.h"
#include "server/acceptor.h"
#include "server/server_context.h"
#include "server/settings/options.h"
#include "server/systemd.h"
#include "server/worker.h"

namespace lockd {

class Server {
 public:
  // Recovers what the journal has, if there is one: throws std::runtime_error with a line for
  // people when it cannot be used. `on_failure` is called, by any thread, when the journal fails:
  // nothing is acknowledged any more, and the server is to be stopped. `support` is for a server
  // that may be one of several.
  explicit Server(const Options& options, std::function<void()> on_failure = {},
                  const ClusterSupport& support = {});
  ~Server();

  // Opens the ports, or takes over the sockets that systemd has opened, and starts the workers. An
  // error line when that cannot be.
  std::string start(const std::vector<Systemd::Socket>& passed = {});
  // 0 when it is not served.
  std::uint16_t port() const { return line_.socket.port; }
  std::uint16_t http_port() const { return http_.socket.port; }
  std::uint32_t threads() const { return context_.options.threads; }
  // What it serves, for callers in this process: they wait in the same queues as everybody else.
  Engine& engine() { return context_.engine; }

  // Reads again what may change: the certificate and its key, the auth tokens, and who may do what.
  // An error line when one of them cannot be used; then nothing has changed.
  std::string reload();
  // Whether every loop has turned since the last call. For one thread.
  bool is_turning();

  // No new line connections; what blocks is answered with `error`; who holds nothing is closed.
  // Those who hold may renew and release, over HTTP until close_http(). A server of a cluster takes
  // no new connections at all, and serves nobody: another does.
  void drain();
  // Line connections. While the server drains, those that are left hold something.
  std::size_t line_connections() const { return context_.admission.line_connections(); }
  std::size_t connections() const { return context_.admission.connections(); }
  // No HTTP any more, but for answers that are under way.
  void close_http();
  // How many keys, connections and subscriptions there are: what memory is used for.
  std::uint64_t objects() const {
    return context_.engine.stats().keys + context_.admission.connections() +
           context_.hub.listeners();
  }
  // Lets another server lead. The journal then fails, as its life is over.
  void resign();
  // Null: it is on its own.
  const ClusterJournal* cluster() const { return context_.cluster.get(); }
  // Cuts what is left, and waits for the workers to end.
  void stop();

 private:
  // Where clients come in. On the first worker's loop, for all of them.
  struct Port {
    ListeningSocket socket;
    std::optional<Acceptor> acceptor;
  };

  Access::Reading read_files();
  std::string open_ports(const std::vector<Systemd::Socket>& passed);
  std::string accept_at(Port& port, Protocol protocol);
  void close(Port& port);
  Worker& least_busy();
  void on_durable() EXCLUDES(told_mutex_);
  void tell(std::vector<Worker*> workers) EXCLUDES(told_mutex_);

  const std::function<void()> on_failure_;

  // The journal's thread calls, from before the engine is made until it is gone.
  Mutex told_mutex_;
  std::vector<Worker*> told_ GUARDED_BY(told_mutex_);  // of what has become durable
  bool has_failed_ GUARDED_BY(told_mutex_) = false;

  ServerContext context_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Port line_;
  Port http_;
  std::size_t last_chosen_ = 0;  // of the workers
  bool running_ = false;
};

}  // namespace lockd
