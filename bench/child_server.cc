#include "child_server.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "client_socket.h"
#include "support/loopback.h"
#include "support/process.h"

namespace lockd::bench {
namespace {

using namespace std::chrono_literals;

// The cores this process may use, as it was started.
std::vector<std::size_t> permitted_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  std::vector<std::size_t> cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

const std::vector<std::size_t>& cores() {
  static const std::vector<std::size_t> all = permitted_cores();
  return all;
}

void keep_to(std::size_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

std::string with_port(std::string word, std::uint16_t port) {
  constexpr std::string_view kPort = "{port}";
  const std::size_t at = word.find(kPort);
  if (at != std::string::npos) word.replace(at, kPort.size(), std::to_string(port));
  return word;
}

// Its standard output is not ours; its complaints are. It has no environment: settings of ours must
// not meet settings that happen to be there.
pid_t start(const ServerCommand& command, std::uint16_t port) {
  std::vector<std::string> words;
  for (const std::string& word : command.words) words.push_back(with_port(word, port));
  const std::size_t core = cores().back();  // asked for before anything is pinned
  return spawn(
      {.words = std::move(words), .errors = STDERR_FILENO, .in_child = [core] { keep_to(core); }});
}

}  // namespace

ChildServer::ChildServer(const ServerCommand& command)
    : port_(free_port()), pid_(start(command, port_)) {
  for (const auto deadline = std::chrono::steady_clock::now() + 10s; !is_served(port_);) {
    const bool ended = ::waitpid(pid_, nullptr, WNOHANG) != 0;
    if (ended || std::chrono::steady_clock::now() > deadline) {
      if (!ended) ::kill(pid_, SIGKILL);
      throw std::runtime_error(command.name + " does not start");
    }
    std::this_thread::sleep_for(5ms);
  }
}

ChildServer::~ChildServer() { kill_and_wait(pid_); }

std::chrono::nanoseconds ChildServer::cpu_time() const {
  clockid_t clock;
  timespec time{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    throw std::runtime_error("the server has ended");
  }
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::size_t ChildServer::private_memory() const {
  std::ifstream rollup("/proc/" + std::to_string(pid_) + "/smaps_rollup");
  std::size_t kib = 0;
  for (std::string line; std::getline(rollup, line);) {
    if (!line.starts_with("Private_Clean:") && !line.starts_with("Private_Dirty:")) continue;
    kib += std::stoul(line.substr(line.find(':') + 1));
  }
  if (kib == 0) throw std::runtime_error("cannot read the server's memory from /proc");
  return kib * 1024;
}

std::string pin_load() {
  if (cores().size() < 2) return "load and server share the only core";
  keep_to(cores().front());
  return "load on core " + std::to_string(cores().front()) + ", server on core " +
         std::to_string(cores().back());
}

std::size_t raise_file_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_max;
}

std::string find_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string program = folder + "/" + name;
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

}  // namespace lockd::bench
