// The nodes of a cluster and their state, for operators. Every node puts a record under its own key
// each second, and reads the others'. No guarantee depends on them. Has no thread and never blocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockd/journal.h"
#include "replication/replication_context.h"

namespace lockd {

// The state of a node, as the node itself reports it.
struct NodeRecord {
  std::string node{};
  std::string address{};  // for clients
  bool leads = false;
  Position applied = 0;                   // position in the chain
  std::uint64_t behind = 0;               // changes in etcd that it has not applied
  std::uint32_t version = kChainVersion;  // the latest that it can read
  std::string program{};                  // its release; empty: unknown
  std::string not_ready{};                // why it could not lead; empty: it could
  std::string incarnation{};              // its journal's; empty: unknown

  bool is_ready() const { return not_ready.empty(); }

  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

std::string to_text(const NodeRecord& record);
std::optional<NodeRecord> node_record_in(std::string_view text);

struct Member {
  NodeRecord record;
  Time last_seen{};
};

class Membership {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(1);
  // Interval after a change of readiness.
  static constexpr Duration kChangeInterval = kInterval / 10;
  // A node that was silent for this long is removed.
  static constexpr Duration kSilenceMax = std::chrono::minutes(1);
  // A leader hands over only to a node whose record is not older than this.
  static constexpr Duration kRecent = 5 * kInterval;

  // Another server has this node's name if it put the record this often since this node did.
  static constexpr int kConflictPuts = 3;

  explicit Membership(ReplicationContext& context) : context_(context) {}

  // Puts this node's record when it is due, and returns when to call again.
  Time turn(Time now, const NodeRecord& self);

  // As of the last answer, ordered by name. Changes only when answers() does.
  std::vector<Member> members() const;
  std::uint64_t answers() const { return answers_; }
  // The latest version that all known nodes can read.
  std::uint32_t version() const;
  // A node that reported this node's address before this node did, and still does; empty: none. If
  // two servers have one address or name, only the later one sees a conflict.
  std::string address_conflict(const NodeRecord& self) const;
  // A server, not an earlier incarnation of this one, that had this node's name before this node.
  std::optional<NodeRecord> name_conflict() const;
  // Why etcd rejected the last record: "read_only" or "etcd_full". Empty: it did not, or unknown.
  std::string_view why_not_written() const { return why_not_written_; }

 private:
  struct SeenNode {
    NodeRecord record;
    etcd::Revision modified = 0;
    Time since{};
    bool again = false;    // its record changed since it was first read
    bool earlier = false;  // its record is older than this node's first
  };

  void on_records(const std::vector<etcd::Entry>& entries, Time now);
  void on_own_record(const std::vector<etcd::Entry>& before, const std::string& incarnation);
  void log_rejection(const etcd::Answer& answer);

  ReplicationContext& context_;
  bool in_flight_ = false;
  bool refused_ = false;
  std::uint64_t answers_ = 0;
  std::optional<Time> put_at_{};
  std::string put_not_ready_;
  std::string_view why_not_written_{};
  std::map<std::string, SeenNode> nodes_;  // by key
  // The record under this node's key before its first put, and how often that was put again.
  std::optional<NodeRecord> predecessor_{};
  int predecessor_puts_ = 0;
};

}  // namespace lockd
