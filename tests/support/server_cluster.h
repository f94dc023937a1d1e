// Servers of this process that are one cluster, without etcd: a test says which of them leads, and
// what the leader appends is applied by the others at once.
//
//   ServerCluster cluster;
//   cluster.lead("a");
//   LineClient client = cluster.connect("b");  // is forwarded to "a"
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "replication/cluster_journal.h"
#include "server/server.h"
#include "support/http_client.h"
#include "support/line_client.h"

namespace lockd {

class ClusterNode;

class ServerCluster {
 public:
  // "a", "b" and "c", unless others are named. Nobody leads. There is one at a time.
  // `adjust` may give each server, by its node_id, settings of its own.
  explicit ServerCluster(const Options& options = http_options(),
                         const std::vector<std::string>& nodes = {"a", "b", "c"},
                         const std::function<void(Options&)>& adjust = {});
  ~ServerCluster();

  // What the servers of a cluster are given to forward.
  static Options forwarding(Options options = http_options());

  // Ends the server that leads, as kill does, and has another lead from what it has applied.
  void lead(const std::string& node);
  void kill(const std::string& node);
  // It is elected, and does not lead yet.
  void elect(const std::string& node);
  // Nobody leads, as far as they know.
  void lead_nobody();
  // What else `node` is to say of itself and the others.
  void set_status(const std::string& node, const ClusterStatus& status);
  // What the leader is said to be reached at.
  void advertise(const std::string& address);

  // What all know of a server besides; of one that is called "silent" nothing was heard for 7 s.
  void add_member(const NodeRecord& record);
  // What the leader was asked for: to whom to hand over last, and how many snapshots.
  std::string transferred_to() const EXCLUDES(mutex_);
  int snapshots() const EXCLUDES(mutex_);

  LineClient connect(const std::string& node, int receive_buffer = 0);
  HttpClient browse(const std::string& node);
  Server& server(const std::string& node) { return *servers_.at(node); }

  // Cuts every link to the leader, once.
  void cut_links();
  // Until each loop of `node` has a link to the leader.
  void await_link(const std::string& node);

 private:
  friend class ClusterNode;

  struct Leadership {
    std::string node{};
    std::string address{};
    std::string settings{};
    std::uint64_t epoch = 0;
  };

  Leadership leadership() const EXCLUDES(mutex_);
  ClusterStatus status_of(const std::string& node) const EXCLUDES(mutex_);
  std::vector<Member> members() const EXCLUDES(mutex_);
  void replicate(const ClusterNode& from, std::span<const Event> events);
  std::string address_of(const std::string& node);

  mutable Mutex mutex_;
  Leadership leadership_ GUARDED_BY(mutex_);
  std::map<std::string, ClusterStatus> statuses_ GUARDED_BY(mutex_);
  std::vector<Member> members_ GUARDED_BY(mutex_);
  std::string transferred_to_ GUARDED_BY(mutex_);
  int snapshots_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, ClusterNode*> nodes_;
  std::map<std::string, std::unique_ptr<Server>> servers_;
  const bool tls_;
};

}  // namespace lockd
