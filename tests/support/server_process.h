// lockd as a process of its own, and what /proc tells of it.
//
// Belongs to the thread of the test. At the end of its scope it is asked to stop, unless it is
// known to have ended; it fails the test if it does not, or not with status 0. Its log is shown
// when the test has failed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "support/line_client.h"

namespace lockd {

class ServerProcess {
 public:
  struct Descriptors {
    std::size_t soft;
    std::size_t hard;
  };

  struct Launch {
    std::vector<std::string> environment{};  // "NAME=value", besides ours
    bool may_refuse = false;                 // it may also end without having listened: port() is 0
    std::string program{};                   // instead of lockd
    // Once it listens, its log is a pipe that is full and that nobody reads.
    bool log_is_stuck = false;
  };

  // In memory and without HTTP, on any free port, unless `flags` say otherwise. `limit` is that on
  // its descriptors; without it, ours.
  explicit ServerProcess(const std::vector<std::string>& flags = {});
  ServerProcess(const std::vector<std::string>& flags, Descriptors limit);
  ServerProcess(const std::vector<std::string>& flags, const Launch& launch);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  std::uint16_t port() const { return port_; }
  // With --http-addr among its flags.
  std::uint16_t http_port() const;
  LineClient connect(int receive_buffer = 0) const { return LineClient(port_, receive_buffer); }
  pid_t pid() const { return pid_; }

  // SIGTERM: asks it to stop.
  void terminate() const;
  // kill -9. It is gone on return.
  void kill();
  // Waits until it has ended by itself. Its exit status, or -1 if it was a signal that ended it or
  // it does not end.
  int await_exit();

  std::size_t descriptors() const;
  // Waits until it has at most that many: a session is over a little before its socket is closed.
  // How many it has then.
  std::size_t await_descriptors(std::size_t count) const;
  std::size_t threads() const { return status_value("Threads:"); }
  // What is resident now, and at most since the start.
  std::size_t memory_kib() const { return status_value("VmRSS:"); }
  std::size_t memory_max_kib() const { return status_value("VmHWM:"); }
  std::chrono::milliseconds cpu_time() const;
  // How often its threads have gone to sleep, all together.
  std::size_t sleeps() const;
  // How many descriptors each of its loops watches.
  std::vector<std::size_t> watched_by_loops() const;
  // The soft limit on its descriptors.
  std::size_t descriptor_limit() const;
  // All it has logged until now, but for the first `from` bytes.
  std::string log(std::size_t from = 0) const;
  // Whether it logs this: a line is written a little later than what it tells of.
  bool comes_to_log(std::string_view words) const;
  // SIGHUP, and what the log says of it; nothing when it says nothing.
  std::string reload() const;

 private:
  void start(const std::vector<std::string>& flags, const Launch& launch, const Descriptors* limit);
  void await_port(bool may_refuse);
  void read_pipe() const;
  void fill_pipe() const;
  bool has_ended();
  std::size_t status_value(std::string_view name) const;
  std::string proc(std::string_view file) const;

  pid_t pid_ = -1;
  int status_ = 0;  // as waitpid tells it
  bool ended_ = false;
  int log_ = -1;
  Descriptor pipe_;  // the reading end of its log, if that is one
  std::uint16_t port_ = 0;
};

}  // namespace lockd
