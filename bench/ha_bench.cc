// What a cluster costs and how long it is without a leader: durable requests per second through
// three members of etcd, beside etcd's own locks on the same members and the bare transactions that
// would carry as many requests, in turns; and the time from the end of a leader to the first grant
// of the next.
//
// Run by `make bench`; figures and what they mean are in docs/performance.md.
//
//   ha_bench [rounds [seconds [failovers]]]
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "candidate.h"
#include "child_server.h"
#include "client_socket.h"
#include "etcd_locks.h"
#include "etcd_txns.h"
#include "ha/etcd_cluster.h"
#include "line_load.h"
#include "support/loopback.h"
#include "support/process.h"

namespace lockd::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = 60s;

// Servers on the members of one etcd, of which one leads.
class Servers {
 public:
  Servers(const std::vector<std::string>& endpoints, std::size_t count) : nodes_(count) {
    for (const std::string& endpoint : endpoints) etcd_ += (etcd_.empty() ? "" : ",") + endpoint;
    for (Node& node : nodes_) node.port = free_port();
    for (std::size_t i = 0; i < nodes_.size(); ++i) start(i);
    find_leader();
  }
  ~Servers() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) end(i, SIGKILL);
  }
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  std::uint16_t leader_port() const { return nodes_[leader_].port; }

  // How long it is from a signal to the leader until another grants a lock, by a client that asks
  // all the time. When it returns, three are there again.
  Clock::duration depose(int signal) {
    const std::size_t gone = leader_;
    const std::string key = "failover-" + std::to_string(++failovers_);
    const Clock::time_point begin = Clock::now();
    ::kill(nodes_[gone].pid, signal);
    while (true) {
      leader_ = (leader_ + 1) % nodes_.size();
      if (leader_ == gone) continue;
      if (ask(leader_, "l\n" + key + "\n0 1\n").starts_with("ok ")) break;
      if (Clock::now() - begin > kPatience) throw std::runtime_error("nobody leads");
      std::this_thread::sleep_for(500us);
    }
    const Clock::duration took = Clock::now() - begin;
    ::waitpid(std::exchange(nodes_[gone].pid, 0), nullptr, 0);
    start(gone);
    // The next one is not to be timed while it reads all that it missed.
    await([&] { return applied(gone) == applied(leader_); });
    return took;
  }

 private:
  struct Node {
    std::uint16_t port = 0;
    pid_t pid = 0;
  };

  void start(std::size_t i) {
    const std::string port = std::to_string(nodes_[i].port);
    const std::string node = "n" + std::to_string(i);
    std::vector<std::string> words = {LOCKD_TEST_SERVER_HA,
                                      "--host",
                                      "127.0.0.1",
                                      "--port",
                                      port,
                                      "--http-addr",
                                      "off",
                                      "--threads",
                                      "1",
                                      "--etcd",
                                      etcd_,
                                      "--etcd-detect",
                                      "0.5",
                                      "--etcd-cluster",
                                      "of-" + std::to_string(nodes_.size()),
                                      "--node-id",
                                      node,
                                      "--advertise-addr",
                                      "127.0.0.1:" + port,
                                      "--max-locks",
                                      "100000"};
    nodes_[i].pid = spawn({.words = std::move(words), .environment = our_environment()});
  }

  void end(std::size_t i, int signal) {
    const pid_t pid = std::exchange(nodes_[i].pid, 0);
    if (pid <= 0) return;
    ::kill(pid, signal);
    ::waitpid(pid, nullptr, 0);
  }

  // Nothing when it does not answer.
  std::string ask(std::size_t i, const std::string& request) const {
    try {
      return ClientSocket(nodes_[i].port).ask(request);
    } catch (const std::runtime_error&) {
      return {};
    }
  }

  // The last batch that it has, as its stats say; different ones while it has none.
  std::string applied(std::size_t i) const {
    const std::string stats = ask(i, "stats\n\n\n");
    const std::size_t at = stats.find("\"applied\":");
    if (at == std::string::npos) return "none at " + std::to_string(i);
    return stats.substr(at, stats.find_first_of(",}", at) - at);
  }

  template <typename Condition>
  static void await(Condition condition) {
    const Clock::time_point deadline = Clock::now() + kPatience;
    while (!condition()) {
      if (Clock::now() > deadline) throw std::runtime_error("the servers do not come to agree");
      std::this_thread::sleep_for(5ms);
    }
  }

  void find_leader() {
    await([this] {
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (ask(i, "barrier\n\n\n") != "ok") continue;
        leader_ = i;
        return true;
      }
      return false;
    });
  }

  std::string etcd_;
  std::vector<Node> nodes_;
  std::size_t leader_ = 0;
  int failovers_ = 0;
};

struct Row {
  std::vector<double> rate, p50_ms, p99_ms;

  void add(const LoadResult& result) {
    const auto ms = [&](double p) {
      return std::chrono::duration<double, std::milli>(result.latencies.percentile(p)).count();
    };
    const double seconds = std::chrono::duration<double>(result.elapsed).count();
    rate.push_back(static_cast<double>(result.requests) / 2 / seconds);
    p50_ms.push_back(ms(0.5));
    p99_ms.push_back(ms(0.99));
  }
  void print(const char* name) const {
    std::printf("  %-10s %9.0f %9.2f %9.2f\n", name, median(rate), median(p50_ms), median(p99_ms));
  }
};

void compare(const ha_test::EtcdCluster& etcd, const Servers& servers, int connections, int rounds,
             double seconds) {
  const LoadTimes times{500ms, std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::duration<double>(seconds))};
  Row ours;
  Row etcds;
  Row appends;
  for (int round = 0; round < rounds; ++round) {
    ours.add(run_load(Protocol::line, servers.leader_port(), {.connections = connections}, times,
                      [] { return 0ns; }));
    etcds.add(run_etcd_locks(etcd.endpoints(), connections, times));
    appends.add(run_etcd_txns(etcd.endpoints(), connections, times));
  }
  std::printf("%d connections, a lock each\n", connections);
  std::printf("  %-10s %9s %9s %9s\n", "", "grants/s", "p50 ms", "p99 ms");
  ours.print("lockd-ha");
  etcds.print("etcd");
  appends.print("bare Txn");
  if (connections == 1) {
    std::printf("  p50 of a request, of a bare transaction's: %.2f\n",
                ratio(ours.p50_ms, appends.p50_ms));
  }
  std::printf("  grants per second, of etcd's own locks: %.1f; of bare transactions: %.1f\n\n",
              ratio(ours.rate, etcds.rate), ratio(appends.rate, etcds.rate));
  std::fflush(stdout);
}

void time_failovers(Servers& servers, const char* what, int signal, int count) {
  std::vector<double> ms;
  for (int i = 0; i < count; ++i) {
    ms.push_back(std::chrono::duration<double, std::milli>(servers.depose(signal)).count());
  }
  const auto [least, most] = std::minmax_element(ms.begin(), ms.end());
  std::printf("%s, %d times: %.0f ms (median), %.0f to %.0f\n", what, count, median(ms), *least,
              *most);
  std::fflush(stdout);
}

void run(int rounds, double seconds, int failovers) {
  std::printf("Three members of etcd, three servers and the load, all on this machine.\n");
  std::printf(
      "Medians of %d runs of %.1f s, taken in turns; a grant is a lock taken and given "
      "back.\n\n",
      rounds, seconds);
  raise_file_limit();
  const ha_test::EtcdCluster etcd(3);
  std::printf("A server alone: what its standbys do on the same cores is none of its cost.\n");
  compare(etcd, Servers(etcd.endpoints(), 1), 1, rounds, seconds);
  std::printf("Three servers.\n");
  Servers servers(etcd.endpoints(), 3);
  for (const int connections : {1, 64, 1000}) {
    compare(etcd, servers, connections, rounds, seconds);
  }
  std::printf("From the end of a leader to the next one's first grant, at --etcd-detect 0.5\n");
  time_failovers(servers, "  kill -9", SIGKILL, failovers);
  time_failovers(servers, "  hand-over on SIGTERM", SIGTERM, failovers);
}

}  // namespace
}  // namespace lockd::bench

int main(int argc, char** argv) {
  try {
    lockd::bench::run(argc > 1 ? std::atoi(argv[1]) : 3, argc > 2 ? std::atof(argv[2]) : 3,
                      argc > 3 ? std::atoi(argv[3]) : 10);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ha_bench: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
