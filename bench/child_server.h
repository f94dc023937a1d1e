// A server that is measured: a child process on a port of its own, and what it has used.
//
// Ends with its object, or with this process. One core is the server's and another the load's,
// where there are two: neither takes time from the other, and what a server costs shows.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockd::bench {

// How a server is started; `{port}` in an argument stands for the port.
struct ServerCommand {
  std::string name;
  std::vector<std::string> words;
};

class ChildServer {
 public:
  // Returns when it listens. Throws std::runtime_error when that cannot be.
  explicit ChildServer(const ServerCommand& command);
  ~ChildServer();
  ChildServer(const ChildServer&) = delete;
  ChildServer& operator=(const ChildServer&) = delete;

  std::uint16_t port() const { return port_; }
  // Of all its threads, in user and kernel mode, since it started.
  std::chrono::nanoseconds cpu_time() const;
  // Memory that is its alone and present: private pages, clean and dirty, of user space. What the
  // kernel keeps for its sockets is not in it.
  std::size_t private_memory() const;

 private:
  std::uint16_t port_;
  pid_t pid_;
};

// Keeps this process to the load's core. Says how servers and load are placed.
std::string pin_load();

// Lets this process, and the servers it starts, open as many files as the system permits; returns
// how many.
std::size_t raise_file_limit();

// The path of a program that is installed; empty when it is not.
std::string find_program(const std::string& name);

}  // namespace lockd::bench
