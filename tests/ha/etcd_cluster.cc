#include "ha/etcd_cluster.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "support/loopback.h"
#include "support/process.h"

namespace lockd::ha_test {
namespace {

// Debian's, or the one that LOCKD_ETCD names.
std::string etcd() {
  const char* const other = std::getenv("LOCKD_ETCD");
  return other == nullptr ? "/usr/bin/etcd" : other;
}

constexpr const char* kEtcdctl = "/usr/bin/etcdctl";

std::string url(std::uint16_t port) { return "http://127.0.0.1:" + std::to_string(port); }

std::string name(std::size_t member) { return "m" + std::to_string(member); }

std::uint64_t number_behind(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + name.size(), nullptr, 10);
}

std::string etcdctl(const std::string& endpoints, const std::string& words,
                    const std::string& input) {
  const std::string command = std::string("ETCDCTL_API=3 ") + kEtcdctl +
                              " --endpoints=" + endpoints + " " + words + " 2>&1 <" + input;
  std::FILE* const out = ::popen(command.c_str(), "re");
  if (out == nullptr) return "popen failed";
  std::string said;
  std::array<char, 4096> bytes;
  for (std::size_t size = 0; (size = std::fread(bytes.data(), 1, bytes.size(), out)) > 0;) {
    said.append(bytes.data(), size);
  }
  ::pclose(out);
  return said;
}

}  // namespace

EtcdCluster::EtcdCluster(std::size_t members, std::uint64_t quota) : quota_(quota) {
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

void EtcdCluster::start(std::size_t number, std::uint64_t quota) {
  Member& member = members_[number];
  const std::string data = directory_.path() + "/" + name(number);
  std::vector<std::string> arguments = {etcd(),
                                        "--name=" + name(number),
                                        "--data-dir=" + data,
                                        "--listen-client-urls=" + url(member.client_port),
                                        "--advertise-client-urls=" + url(member.client_port),
                                        "--listen-peer-urls=" + url(member.peer_port),
                                        "--initial-advertise-peer-urls=" + url(member.peer_port),
                                        "--initial-cluster=" + initial_cluster(),
                                        "--initial-cluster-state=new",
                                        "--snapshot-count=5000",
                                        "--quota-backend-bytes=" + std::to_string(quota),
                                        "--log-level=error"};
  const std::string log = data + ".log";
  const int out = ::open(log.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
  member.pid = spawn({.words = std::move(arguments),
                      .environment = our_environment(),
                      .output = out,
                      .errors = out});
  ::close(out);
}

void EtcdCluster::kill(std::size_t member) {
  kill_and_wait(std::exchange(members_[member].pid, 0));
}

void EtcdCluster::stop(std::size_t member) { ::kill(members_[member].pid, SIGSTOP); }

void EtcdCluster::go_on(std::size_t member) { ::kill(members_[member].pid, SIGCONT); }

std::string EtcdCluster::control(const std::string& words, const std::string& input) const {
  std::string all;
  for (const std::string& endpoint : endpoints()) all += (all.empty() ? "" : ",") + endpoint;
  return etcdctl(all, "--command-timeout=30s " + words, input);
}

std::uint64_t EtcdCluster::revision() const {
  return number_behind(control("get nothing -w json"), "\"revision\":");
}

bool EtcdCluster::await_healthy(std::size_t member) const {
  const std::string endpoint = endpoints()[member];
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < deadline) {
    const std::string said = etcdctl(endpoint, "endpoint health", "/dev/null");
    if (said.find("is healthy") != std::string::npos) return true;
  }
  return false;
}

}  // namespace lockd::ha_test
