#include "support/server_cluster.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/json/parse.hpp>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cluster/cluster_gate.h"
#include "server/log.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

ServerCluster* opened = nullptr;  // by an OpenCluster, which is given nothing else

}  // namespace

// A node's journal: all that is appended is durable at once.
class ClusterNode final : public ClusterJournal {
 public:
  ClusterNode(ServerCluster& cluster, const Options& options)
      : cluster_(cluster),
        name_(options.node_id),
        settings_("max-locks=" + std::to_string(options.max_locks)),
        detect_(options.etcd_detect) {
    cluster_.nodes_[name_] = this;
  }
  ~ClusterNode() override { cluster_.nodes_.erase(name_); }

  void lead() {
    Source* const source = [this] {
      MutexLock lock(mutex_);
      return source_;
    }();
    source->lead(0, Duration::zero());
    state_ = State::accepting;
    source->progressed();
  }
  // One whose server is stopping takes nothing in any more.
  void apply(const Event& event) {
    MutexLock lock(mutex_);
    if (source_ == nullptr || state_ != State::following) return;
    EXPECT_TRUE(source_->apply(event));
  }

  const std::string& settings() const { return settings_; }

  bool recover(const std::function<void(const Event&)>&) override { return false; }
  Position append(std::span<const Event> events) override {
    cluster_.replicate(*this, events);
    return position_ += 1;
  }
  void commit(Position) override {}
  Position durable() const noexcept override { return position_; }
  State state() const noexcept override { return state_; }
  void attach(Source* source) override {
    MutexLock lock(mutex_);
    source_ = source;
  }
  Clock& clock() const override { return clock_; }
  void resign() override {}
  bool transfer(const std::string& node) override {
    if (state_ == State::following) return false;
    MutexLock lock(cluster_.mutex_);
    cluster_.transferred_to_ = node;
    return true;
  }
  bool begin_snapshot() override {
    if (state_ == State::following) return false;
    MutexLock lock(cluster_.mutex_);
    ++cluster_.snapshots_;
    return true;
  }
  bool is_cut_off() const noexcept override { return false; }
  std::string reload() override { return {}; }
  const ReplicationStats& stats() const override { return stats_; }
  ClusterStatus status() const override {
    const ServerCluster::Leadership now = cluster_.leadership();
    ClusterStatus status = cluster_.status_of(name_);
    status.leads = status.certain = now.node == name_;
    status.leader.epoch = static_cast<etcd::Revision>(now.epoch);
    status.leader.record = {
        .incarnation = {}, .node = now.node, .address = now.address, .policy = now.settings};
    status.settings = now.settings;
    status.own_settings = settings_;
    status.detect = detect_;
    status.base = {.epoch = 5, .seq = 1};
    status.head = {.epoch = 5, .seq = 9};
    for (Member& member : cluster_.members()) {
      member.last_seen = member.record.node == "silent" ? clock_.now() - 7s : clock_.now();
      status.members.push_back(std::move(member));
    }
    return status;
  }

 private:
  ServerCluster& cluster_;
  const std::string name_;
  const std::string settings_;
  const Duration detect_;
  Mutex mutex_;
  Source* source_ GUARDED_BY(mutex_) = nullptr;
  std::atomic<State> state_{State::following};
  std::atomic<Position> position_{0};
  mutable SystemClock clock_;
  ReplicationStats stats_;
};

Options ServerCluster::forwarding(Options options) {
  options.cluster_secret = "what all servers of one cluster know";
  options.etcd_detect = 300ms;
  return options;
}

ServerCluster::ServerCluster(const Options& options, const std::vector<std::string>& nodes,
                             const std::function<void(Options&)>& adjust)
    : tls_(!options.tls_cert.empty()) {
  set_up_log(LogLevel::error, LogFormat::text);
  opened = this;
  for (const std::string& node : nodes) {
    Options of_node = options;
    of_node.etcd = {"nowhere:1"};
    of_node.node_id = node;
    if (adjust) adjust(of_node);
    auto server = std::make_unique<Server>(
        of_node, [] {},
        ClusterSupport{.open = [](const Options& given) -> std::unique_ptr<ClusterJournal> {
                         return std::make_unique<ClusterNode>(*opened, given);
                       },
                       .make_gates = make_cluster_gates});
    if (const std::string error = server->start(); !error.empty()) std::abort();
    servers_[node] = std::move(server);
  }
}

ServerCluster::~ServerCluster() {
  for (auto& [node, server] : servers_) server->stop();
}

ServerCluster::Leadership ServerCluster::leadership() const {
  MutexLock lock(mutex_);
  return leadership_;
}

std::vector<Member> ServerCluster::members() const {
  MutexLock lock(mutex_);
  return members_;
}

void ServerCluster::add_member(const NodeRecord& record) {
  MutexLock lock(mutex_);
  members_.push_back({record});
}

std::string ServerCluster::transferred_to() const {
  MutexLock lock(mutex_);
  return transferred_to_;
}

int ServerCluster::snapshots() const {
  MutexLock lock(mutex_);
  return snapshots_;
}

std::string ServerCluster::address_of(const std::string& node) {
  return "127.0.0.1:" + std::to_string(server(node).port());
}

void ServerCluster::lead(const std::string& node) {
  const std::string last = leadership().node;
  if (!last.empty()) kill(last);
  nodes_.at(node)->lead();
  elect(node);
}

void ServerCluster::kill(const std::string& node) {
  const auto found = servers_.find(node);
  if (found == servers_.end()) return;
  found->second->stop();
  servers_.erase(found);
}

void ServerCluster::elect(const std::string& node) {
  const std::string address = address_of(node);
  MutexLock lock(mutex_);
  leadership_ = {.node = node,
                 .address = address,
                 .settings = nodes_.at(node)->settings(),
                 .epoch = leadership_.epoch + 1};
}

void ServerCluster::lead_nobody() {
  MutexLock lock(mutex_);
  leadership_ = {.epoch = 0};
}

void ServerCluster::set_status(const std::string& node, const ClusterStatus& status) {
  MutexLock lock(mutex_);
  statuses_[node] = status;
}

ClusterStatus ServerCluster::status_of(const std::string& node) const {
  MutexLock lock(mutex_);
  const auto found = statuses_.find(node);
  return found == statuses_.end() ? ClusterStatus{.caught_up = true} : found->second;
}

void ServerCluster::advertise(const std::string& address) {
  MutexLock lock(mutex_);
  leadership_.address = address;
  ++leadership_.epoch;
}

// Under a shard's lock of the leader's: the others have shards of their own.
void ServerCluster::replicate(const ClusterNode& from, std::span<const Event> events) {
  const Time now = from.clock().now();
  for (const auto& [name, node] : nodes_) {
    if (node == &from) continue;
    for (Event event : events) {
      const bool has_lease =
          event.type == Event::Type::granted || event.type == Event::Type::renewed;
      if (has_lease) event.expires_at = Time{} + (event.expires_at - now);
      node->apply(event);
    }
  }
}

LineClient ServerCluster::connect(const std::string& node, int receive_buffer) {
  return LineClient(server(node).port(), receive_buffer, tls_);
}

HttpClient ServerCluster::browse(const std::string& node) {
  return HttpClient({.port = server(node).http_port(), .tls = tls_});
}

void ServerCluster::cut_links() {
  LineClient admin = connect(leadership().node);
  const std::string listed = admin.ask(request("api", "GET /v1/clients", "{}"));
  const auto clients = boost::json::parse(listed.substr(listed.find('{')));
  for (const auto& client : clients.at("clients").as_array()) {
    const auto* const note = client.as_object().if_contains("note");
    if (note == nullptr || note->as_string() != "forwards") continue;
    const std::string id = std::to_string(client.at("client_id").to_number<std::uint64_t>());
    const std::string reply = admin.ask(request("api", "POST /v1/admin/disconnect",
                                                R"({"client_id":)" + id + R"(,"reason":"cut"})"));
    EXPECT_TRUE(reply.starts_with("ok 200 ")) << reply;
  }
}

void ServerCluster::await_link(const std::string& node) {
  // Each loop has a link of its own, and these clients are on all loops.
  std::vector<LineClient> clients;
  for (std::uint32_t i = 0; i < 2 * server(node).threads(); ++i) clients.push_back(connect(node));
  for (LineClient& client : clients) {
    for (int i = 0; i < 200 && client.ask(request("barrier", "", "")) != "ok"; ++i) {
      std::this_thread::sleep_for(20ms);
    }
  }
}

}  // namespace lockd
