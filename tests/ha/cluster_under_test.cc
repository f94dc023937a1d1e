#include "ha/cluster_under_test.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

#include "support/loopback.h"

namespace lockd::histories {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;
constexpr auto kPoll = 2ms;
constexpr std::string_view kLeads = "cluster: this node leads, epoch ";
constexpr std::string_view kForwards = " forwards to the leader ";
constexpr std::string_view kDetect = "0.7";
// By so much the time of a line in a log may be off, by our clock.
constexpr Instant kLogLate = kSecond / 20;
constexpr std::size_t kLogShown = 4000;
// Ahead of the machine's at the start, so that pauses can be taken off.
constexpr Instant kClockAhead = 3600 * kSecond;

// What the wall clock shows at the beginning of the clock of a history.
Instant wall_clock() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return Instant{time.tv_sec} * kSecond + time.tv_nsec - now();
}

// The time of a line of a log, by the wall clock, to the millisecond.
Instant time_of(const std::string& line) {
  std::tm parts{};
  const char* const rest = ::strptime(line.c_str(), "%Y-%m-%dT%H:%M:%S.", &parts);
  if (rest == nullptr) return 0;
  return Instant{::timegm(&parts)} * kSecond + std::strtol(rest, nullptr, 10) * (kSecond / 1000);
}

// The value of a field of a line of a log.
std::string field(std::string_view line, std::string_view name) {
  const std::size_t at = line.find(name);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = line.substr(at + name.size());
  return std::string(rest.substr(0, rest.find_first_of(" \"\n")));
}

std::string loopback_address(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

void write_secret(const std::string& path) {
  std::ofstream(path) << "a secret of these servers alone\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
}

}  // namespace

ClusterUnderTest::ClusterUnderTest(Settings settings, const ha_test::EtcdCluster& etcd,
                                   ChaosProxy& proxy, bool forwards)
    : ServerUnderTest(std::move(settings), kNodes), forwards_(forwards), wall_clock_(wall_clock()) {
  if (forwards_) write_secret(secret_file());
  for (std::size_t i = 0; i < kNodes; ++i) {
    servers_[i].line_port = free_port();
    servers_[i].http_port = free_port();
    servers_[i].address = loopback_address(proxy.listen(peer_links(i), [this, i] {
      return ChaosProxy::Upstream{parted_ ? std::uint16_t{0} : place(i).line_port, 1};
    }));
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

std::uint16_t ClusterUnderTest::peer_links(std::size_t node) const {
  return static_cast<std::uint16_t>(2000 + node);
}

std::vector<std::string> ClusterUnderTest::flags(const Node& node) const {
  std::string etcd;
  for (const std::string& member : node.etcd) etcd += (etcd.empty() ? "" : ",") + member;
  std::vector<std::string> flags = common_flags();
  flags.insert(flags.end(), {"--port", std::to_string(node.line_port), "--http-addr",
                             loopback_address(node.http_port), "--advertise-addr", node.address,
                             "--etcd", etcd, "--etcd-detect", std::string(kDetect)});
  if (forwards_) flags.insert(flags.end(), {"--cluster-secret-file", secret_file()});
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
          .environment = environment(node), .may_refuse = true, .program = LOCKD_TEST_SERVER_HA});
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

void ClusterUnderTest::attribute(std::vector<Operation>& operations) {
  find_epochs();
  std::map<std::uint32_t, Instant> enqueued;  // the last call, by process
  for (Operation& operation : operations) {
    if (operation.function > Function::stats || operation.server != settings().number) continue;
    if (operation.function == Function::enqueue) enqueued[operation.proc] = operation.call;
    const bool awaits = operation.function == Function::wait && enqueued.contains(operation.proc);
    attribute(operation, awaits ? enqueued[operation.proc] : operation.call);
  }
}

// Which leader has answered is not known when the node found another one meanwhile. A node sends no
// request twice, and none later that it has answered `error_not_leader`.
void ClusterUnderTest::attribute(Operation& operation, Instant since) const {
  const bool is_known = operation.result != Result::info;
  const Instant until = is_known ? operation.ret : operation.gave_up;
  const std::vector<Service>& services = servers_[operation.node].services;
  const auto first =
      std::ranges::lower_bound(services, since - kLogLate, std::less<>(), &Service::since);
  const bool has_changed = first != services.end() && first->since <= until + kLogLate;
  const bool is_certain = !has_changed && first != services.begin();
  operation.life = is_certain ? std::prev(first)->epoch : 0;
  operation.forwarded = first != services.begin() && std::prev(first)->leader != operation.node;
}

void ClusterUnderTest::read_log(std::size_t number) {
  Node& node = servers_[number];
  if (node.process == nullptr) return;
  std::string text = node.process->log(node.read);
  text.resize(text.rfind('\n') + 1);  // the rest of a line comes later
  node.read += text.size();
  node.log += text;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    read_line(number, std::string_view(text).substr(at, end - at));
    at = end + 1;
  }
}

void ClusterUnderTest::read_line(std::size_t number, std::string_view line) {
  Node& node = servers_[number];
  const std::size_t leads = line.find(kLeads);
  const bool forwards = line.find(kForwards) != std::string_view::npos;
  if (leads == std::string_view::npos && !forwards) return;
  const Instant since = time_of(std::string(line)) - wall_clock_;
  if (forwards) {
    const auto leader = std::ranges::find(servers_, field(line, "address=\""), &Node::address);
    node.services.push_back({since, static_cast<std::size_t>(leader - servers_.begin())});
    return;
  }
  std::from_chars(line.data() + leads + kLeads.size(), line.data() + line.size(), node.epoch);
  node.services.push_back({since, number, node.epoch});
  reigns_.push_back({node.epoch, number, now()});
}

// Whoever others were connected to as to the leader had come to lead before.
void ClusterUnderTest::find_epochs() {
  reigns();  // reads all logs
  for (std::size_t number = 0; number < kNodes; ++number) {
    for (Service& service : servers_[number].services) {
      if (service.leader == number || service.leader == kNodes) continue;
      for (const Service& other : servers_[service.leader].services) {
        const bool leads = other.leader == service.leader && other.epoch != 0;
        if (leads && other.since <= service.since + kLogLate) service.epoch = other.epoch;
      }
    }
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
