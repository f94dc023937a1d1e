// Who is in a cluster, for people who look at it and operate it. Each node says now and then how it
// is, under a key of its own, and reads what the others say. Nothing that is promised depends on
// it.
//
// Without a thread, and never waits: callbacks of the client's note down, turn() goes on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockd/journal.h"
#include "replication/etcd_client.h"
#include "replication/patience.h"
#include "replication/records.h"
#include "replication/telemetry.h"

namespace lockd {

// What a node says of itself.
struct NodeRecord {
  std::string node{};
  std::string address{};  // for clients
  bool leads = false;
  Position applied = 0;                   // how far along the chain it is
  std::uint64_t behind = 0;               // changes that etcd had and it did not
  std::uint32_t version = kChainVersion;  // the latest that it reads
  std::string program{};                  // its release; empty: it does not say
  std::string not_ready{};                // why it could not lead; empty: it could
  std::string incarnation{};              // of its journal; empty: it does not say

  bool is_ready() const { return not_ready.empty(); }

  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

std::string to_text(const NodeRecord& record);
std::optional<NodeRecord> node_record_in(std::string_view text);

struct Member {
  NodeRecord record;
  Time heard{};  // last
};

class Membership {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(1);
  // But whether it could lead, nearly as soon as that is otherwise.
  static constexpr Duration kNewsInterval = kInterval / 10;
  // Whoever has said nothing for so long is taken off.
  static constexpr Duration kSilenceMax = std::chrono::minutes(1);
  // Nobody hands over to one that has said nothing for so long.
  static constexpr Duration kLately = 5 * kInterval;

  // A namesake is one that has said something so often since this node did. Once may be the last
  // that an earlier life has sent, and came late.
  static constexpr int kNamesakeSays = 3;

  // Both outlive it.
  Membership(etcd::Client& client, const EtcdKeys& keys, const Patience& patience, ClusterLog log)
      : client_(client), keys_(keys), patience_(patience), log_(std::move(log)) {}

  // Says what there is to say of this node, and returns when to call again.
  Time turn(Time now, const NodeRecord& self);

  // As of the last answer, by their names. Changes with the number of answers.
  std::vector<Member> members() const;
  std::uint64_t answers() const { return answers_; }
  // The latest that all who were heard of read.
  std::uint32_t version() const;
  // Another node that said before this one did that it is reached at that address, and still does;
  // empty: none. Of two, one alone is told of the other: the one that came later.
  std::string who_else_is_at(const NodeRecord& self) const;
  // Another server that was called as this one is before this one said anything, and still is. Not
  // one that has ended since, nor an earlier life of this one. Nothing: there is none.
  std::optional<NodeRecord> namesake() const;
  // Why the last that it said did not come to be there: "read_only", without the right to write, or
  // "etcd_full". Empty: it did, or nobody knows.
  std::string_view why_not_written() const { return why_not_written_; }

 private:
  struct Heard {
    NodeRecord record;
    etcd::Revision modified = 0;
    Time since{};
    bool again = false;    // it was heard of more than once
    bool earlier = false;  // it was there before this node had said anything
  };

  void take(const std::vector<etcd::Entry>& entries, Time now);
  void take_own(const std::vector<etcd::Entry>& before, const std::string& incarnation);
  void tell(const etcd::Answer& answer);

  etcd::Client& client_;
  const EtcdKeys& keys_;
  const Patience& patience_;
  const ClusterLog log_;
  bool asking_ = false;
  bool refused_ = false;
  std::uint64_t answers_ = 0;
  std::optional<Time> said_at_{};
  std::string said_not_ready_;
  std::string_view why_not_written_{};
  std::map<std::string, Heard> heard_;  // by key
  // What was under its own key before it put anything there, and how often that was put again.
  std::optional<NodeRecord> predecessor_{};
  int predecessor_again_ = 0;
};

}  // namespace lockd
