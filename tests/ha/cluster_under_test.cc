#include "ha/cluster_under_test.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <thread>

#include "support/loopback.h"

namespace lockd::histories {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;
constexpr auto kPoll = 2ms;
constexpr std::string_view kLeads = "cluster: this node leads, epoch ";
constexpr std::string_view kDetect = "0.7";
constexpr std::size_t kLogShown = 4000;
// Ahead of the machine's at the start, so that pauses can be taken off.
constexpr Instant kClockAhead = 3600 * kSecond;

// Now, as a server's log writes it: these compare as texts.
std::string log_time() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::tm parts{};
  ::gmtime_r(&now.tv_sec, &parts);
  std::array<char, 40> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + size, text.size() - size, ".%03ldZ", now.tv_nsec / 1'000'000);
  return text.data();
}

std::string loopback_address(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

}  // namespace

ClusterUnderTest::ClusterUnderTest(Settings settings, const ha_test::EtcdCluster& etcd,
                                   ChaosProxy& proxy)
    : ServerUnderTest(std::move(settings), kNodes) {
  for (std::size_t i = 0; i < kNodes; ++i) {
    servers_[i].line_port = free_port();
    servers_[i].http_port = free_port();
    for (std::size_t member = 0; member < etcd.size(); ++member) {
      const std::uint16_t port = proxy.listen(link(i, member), [this, &etcd, i, member] {
        return ChaosProxy::Upstream{cut_off_[i] ? std::uint16_t{0} : etcd.port(member), 1};
      });
      servers_[i].etcd.push_back(loopback_address(port));
    }
  }
}

std::uint16_t ClusterUnderTest::link(std::size_t node, std::size_t member) const {
  return static_cast<std::uint16_t>(1000 + 10 * node + member);
}

std::vector<std::string> ClusterUnderTest::flags(const Node& node) const {
  std::string etcd;
  for (const std::string& member : node.etcd) etcd += (etcd.empty() ? "" : ",") + member;
  std::vector<std::string> flags = common_flags();
  flags.insert(flags.end(), {"--port", std::to_string(node.line_port), "--http-addr",
                             loopback_address(node.http_port), "--advertise-addr",
                             loopback_address(node.line_port), "--etcd", etcd, "--etcd-detect",
                             std::string(kDetect)});
  return flags;
}

std::vector<std::string> ClusterUnderTest::environment([[maybe_unused]] std::size_t node) {
#ifdef LOCKD_FAULT_SHIM
  if (settings().directory.empty()) return {};
  const std::string path = settings().directory + "/faults-" + std::to_string(node);
  servers_[node].faults = LiveFaults::map(path.c_str());
  servers_[node].faults->boot_ns = kClockAhead;
  return {"LD_PRELOAD=" LOCKD_FAULT_SHIM, "LOCKD_FAULT_LIVE=" + path};
#else
  return {};
#endif
}

void ClusterUnderTest::start() {
  for (std::size_t node = 0; node < kNodes; ++node) start_node(node);
  await_reign_after(0);
}

void ClusterUnderTest::stop() {
  for (std::size_t node = 0; node < kNodes; ++node) stop_node(node);
}

void ClusterUnderTest::start_node(std::size_t node) {
  Node& starting = servers_[node];
  auto process = std::make_unique<ServerProcess>(
      flags(starting),
      ServerProcess::Launch{
          .environment = environment(node), .may_refuse = true, .program = LOCKD_DFLOCKD_HA});
  {
    const std::lock_guard lock(logs_mutex_);
    starting.process = std::move(process);
    starting.read = 0;
  }
  if (starting.process->port() == 0) fail("node " + std::to_string(node) + " does not start");
  came_up(starting.line_port, starting.http_port, node);
}

void ClusterUnderTest::kill_node(std::size_t node) {
  goes_down(node);
  servers_[node].process->kill();
  end(node);
}

void ClusterUnderTest::stop_node(std::size_t node) {
  goes_down(node);
  servers_[node].process->terminate();
  const int status = servers_[node].process->await_exit();
  end(node);
  if (status != 0) fail("node " + std::to_string(node) + " does not stop in good order");
}

// What it has logged is kept: it may have led and answered until a moment ago.
void ClusterUnderTest::end(std::size_t node) {
  const std::lock_guard lock(logs_mutex_);
  read_log(node);
  servers_[node].process.reset();
}

void ClusterUnderTest::freeze(std::size_t node) {
  const pid_t pid = servers_[node].process->pid();
  ::kill(pid, SIGSTOP);
  siginfo_t stopped{};
  ::waitid(P_PID, static_cast<id_t>(pid), &stopped, WSTOPPED);
}

void ClusterUnderTest::thaw(std::size_t node) { ::kill(servers_[node].process->pid(), SIGCONT); }

void ClusterUnderTest::pause(std::size_t node) {
  freeze(node);
  servers_[node].paused = now();
}

void ClusterUnderTest::resume(std::size_t node) {
  servers_[node].faults->boot_ns -= now() - servers_[node].paused;
  thaw(node);
}

bool ClusterUnderTest::can_pause() {
#ifdef LOCKD_FAULT_SHIM
  return true;
#else
  return false;
#endif
}

void ClusterUnderTest::is_deposed(std::size_t node) {
  goes_down(node);
  came_up(servers_[node].line_port, servers_[node].http_port, node);
}

std::size_t ClusterUnderTest::node_at(const std::string& address) const {
  for (std::size_t i = 0; i < kNodes; ++i) {
    if (address == loopback_address(servers_[i].line_port)) return i;
  }
  return static_cast<std::size_t>(now() / 1000) % kNodes;  // nobody leads: anybody will know
}

// It said so in its log before it answered; but a thread of its own writes that. Where somebody has
// led since, the line may be on its way. What it says it began later does not count.
std::uint32_t ClusterUnderTest::life_told(std::size_t node, std::uint32_t) {
  constexpr int kLooks = 20;
  const std::string answered = log_time();
  for (int look = 1;; ++look) {
    {
      const std::lock_guard lock(logs_mutex_);
      read_log(node);
      std::uint32_t epoch = 0;
      for (const auto& [begun, led] : servers_[node].led) {
        if (begun <= answered) epoch = led;
      }
      const auto is_later = [&](const Node& other) { return other.epoch > epoch; };
      if (look == kLooks || std::ranges::none_of(servers_, is_later)) return epoch;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void ClusterUnderTest::read_log(std::size_t number) {
  Node& node = servers_[number];
  if (node.process == nullptr) return;
  std::string text = node.process->log(node.read);
  text.resize(text.rfind('\n') + 1);  // the rest of a line comes later
  node.read += text.size();
  node.log += text;
  for (std::size_t at = 0; (at = text.find(kLeads, at)) != std::string::npos;) {
    at += kLeads.size();
    std::from_chars(text.data() + at, text.data() + text.size(), node.epoch);
    const std::size_t line = text.rfind('\n', at) + 1;
    node.led.emplace_back(text.substr(line, log_time().size()), node.epoch);
    reigns_.push_back({node.epoch, number, now()});
  }
}

std::vector<Reign> ClusterUnderTest::reigns() {
  const std::lock_guard lock(logs_mutex_);
  for (std::size_t node = 0; node < kNodes; ++node) read_log(node);
  std::sort(reigns_.begin(), reigns_.end(),
            [](const Reign& a, const Reign& b) { return a.epoch < b.epoch; });
  return reigns_;
}

Reign ClusterUnderTest::last_reign() {
  const std::vector<Reign> all = reigns();
  return all.empty() ? Reign{} : all.back();
}

Reign ClusterUnderTest::await_reign_after(std::uint32_t epoch) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (const Reign last = last_reign(); last.epoch > epoch) return last;
    std::this_thread::sleep_for(kPoll);
  }
  fail("nobody has come to lead");
}

void ClusterUnderTest::await_service() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (says_it_leads(leader())) return;
    std::this_thread::sleep_for(10ms);
  }
  fail("nobody serves");
}

bool ClusterUnderTest::says_it_leads(std::size_t node) {
  if (place(node).line_port == 0) return false;
  LineClient client(servers_[node].line_port, 0, false);
  if (!client.connected()) return false;
  client.send("barrier\n\n\n");
  return client.read_line(2s) == "ok";
}

std::string ClusterUnderTest::log(std::size_t node) {
  const std::lock_guard lock(logs_mutex_);
  read_log(node);
  return servers_[node].log;
}

void ClusterUnderTest::fail(const std::string& what) {
  std::string all = "the cluster: " + what + "\n";
  for (std::size_t node = 0; node < kNodes; ++node) {
    const std::string text = log(node);
    all += "--- the end of the log of node " + std::to_string(node) + "\n" +
           text.substr(text.size() - std::min(text.size(), kLogShown));
  }
  throw std::runtime_error(all);
}

}  // namespace lockd::histories
