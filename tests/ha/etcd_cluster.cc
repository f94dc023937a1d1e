#include "ha/etcd_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace lockd::ha_test {
namespace {

constexpr const char* kEtcd = "/usr/bin/etcd";

// One that is free now, and most likely a moment later.
std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket, any, size) != 0 || ::getsockname(socket, any, &size) != 0) std::abort();
  ::close(socket);
  return ntohs(address.sin_port);
}

std::string url(std::uint16_t port) { return "http://127.0.0.1:" + std::to_string(port); }

std::string name(std::size_t member) { return "m" + std::to_string(member); }

}  // namespace

EtcdCluster::EtcdCluster(std::size_t members) {
  for (std::size_t i = 0; i < members; ++i) members_.push_back({free_port(), free_port()});
  for (std::size_t i = 0; i < members; ++i) start(i);
}

EtcdCluster::~EtcdCluster() {
  for (std::size_t i = 0; i < members_.size(); ++i) kill(i);
}

std::vector<std::string> EtcdCluster::endpoints() const {
  std::vector<std::string> all;
  for (const Member& m : members_) all.push_back("127.0.0.1:" + std::to_string(m.client_port));
  return all;
}

std::string EtcdCluster::initial_cluster() const {
  std::string text;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i > 0) text += ',';
    text += name(i) + '=' + url(members_[i].peer_port);
  }
  return text;
}

void EtcdCluster::start(std::size_t number) {
  Member& member = members_[number];
  const std::string data = directory_.path() + "/" + name(number);
  std::vector<std::string> arguments = {kEtcd,
                                        "--name=" + name(number),
                                        "--data-dir=" + data,
                                        "--listen-client-urls=" + url(member.client_port),
                                        "--advertise-client-urls=" + url(member.client_port),
                                        "--listen-peer-urls=" + url(member.peer_port),
                                        "--initial-advertise-peer-urls=" + url(member.peer_port),
                                        "--initial-cluster=" + initial_cluster(),
                                        "--initial-cluster-state=new",
                                        "--snapshot-count=5000",
                                        "--log-level=error"};
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const std::string log = data + ".log";
  const int out = ::open(log.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
  member.pid = ::fork();
  if (member.pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::close_range(STDERR_FILENO + 1, ~0U, 0);
    ::execv(kEtcd, pointers.data());
    ::_exit(127);
  }
  ::close(out);
}

void EtcdCluster::kill(std::size_t member) {
  const pid_t pid = std::exchange(members_[member].pid, 0);
  if (pid <= 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

void EtcdCluster::stop(std::size_t member) { ::kill(members_[member].pid, SIGSTOP); }

void EtcdCluster::go_on(std::size_t member) { ::kill(members_[member].pid, SIGCONT); }

}  // namespace lockd::ha_test
