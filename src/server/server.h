// The server: its listening socket, its workers, and how it stops.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/options.h"
#include "server/shared.h"
#include "server/worker.h"

namespace lockd {

class Server {
 public:
  explicit Server(const Options& options) : shared_(options) {}
  ~Server();

  // Opens the port and starts the workers. An error line when that cannot be.
  std::string start();
  std::uint16_t port() const { return port_; }

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
