// The server: its listening socket, its workers, and how it stops.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/options.h"
#include "server/shared.h"
#include "server/systemd.h"
#include "server/worker.h"

namespace lockd {

class Server {
 public:
  explicit Server(const Options& options) : shared_(options) {}
  ~Server();

  // Opens the port, or takes over the socket that systemd has opened, and starts the workers. An
  // error line when that cannot be.
  std::string start(const std::vector<Systemd::Socket>& passed = {});
  std::uint16_t port() const { return port_; }

  // Reads again what may change: the certificate and its key. An error line when they cannot be
  // used; then nothing has changed.
  std::string reload() { return shared_.tls.load(); }
  // Whether every loop has turned since the last call. For one thread.
  bool is_turning();

  // No new connections; what blocks is answered with `error`; the rest finish what they began.
  void drain();
  // Whether nobody is connected any more.
  bool is_drained() const { return shared_.admission.connections() == 0; }
  // Cuts what is left, and waits for the workers to end.
  void stop();

 private:
  Shared shared_;
  std::vector<std::unique_ptr<Worker>> workers_;
  int listening_ = -1;
  std::uint16_t port_ = 0;
  bool running_ = false;
};

}  // namespace lockd
