// The interface of a server to the journal that it shares with other servers. When its state is
// `failed` it is over, and status() says why. Any thread may call any function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockd/clock.h"
#include "lockd/journal.h"
#include "replication/membership.h"
#include "replication/replication_context.h"

namespace lockd {

// What a node knows of its cluster.
struct ClusterStatus {
  bool leads = false;
  bool certain = false;    // and no other server does
  CurrentLeader leader{};  // the leader that this node follows, or the node itself
  std::string settings{};  // the last leader's, which are in force (shared_settings.h)
  std::string own_settings{};
  Duration detect{};            // the one in force
  Position applied = 0;         // position in the chain
  BatchId last_batch{};         // last batch applied, or appended
  etcd::Revision revision = 0;  // etcd's revision at that batch
  // The ends of the chain at the last observation of etcd.
  BatchId base{};
  BatchId head{};
  std::uint64_t behind = 0;  // changes of the chain at the last observation that were not applied
  bool caught_up = false;    // the node had applied the whole chain at least once
  std::optional<Time> lags_since{};  // when it learned of a change that it has not applied yet
  Time answered{};                   // etcd's last answer; zero: none yet
  std::string unreadable{};          // why the chain cannot be read; empty: it can
  BatchId unreadable_batch{};        // none: the cause is not a batch
  std::string_view not_written{};    // why etcd rejects this node's writes; empty: it does not
  std::string_view not_ready{};      // why the node could not lead; empty: it could
  std::vector<Member> members{};     // all nodes of the cluster, this one included
  std::uint64_t members_answer = 0;  // the number of the answer that had them
  std::string over{};                // why the journal is over; empty: it is not
  bool refused = false;              // a new journal would end for the same reason
};

// Why this node could not take over now, or could not continue to lead; empty if it could.
inline std::string_view why_not_ready(const ClusterStatus& status, Time now) {
  if (!status.unreadable.empty()) return "unreadable";
  if (!status.caught_up) return "catching_up";
  if (!status.not_written.empty()) return status.not_written;
  if (now > status.answered + status.detect) return "no_etcd";
  const bool lags = status.lags_since.has_value() && now > *status.lags_since + status.detect;
  return lags ? "catching_up" : "";
}

class ClusterJournal : public Journal {
 public:
  // The clock for the engine.
  virtual Clock& clock() const = 0;
  // Hands over when all appends are acknowledged.
  virtual void resign() = 0;
  // See ReplicatedJournal.
  virtual bool transfer(const std::string& node) = 0;
  virtual bool begin_snapshot() = 0;
  // The node was unable to confirm its leadership for so long that another may lead: clients that
  // wait for its answers should be disconnected.
  virtual bool is_cut_off() const noexcept = 0;
  // Reads certificates and passwords again. Returns an error, or nothing.
  virtual std::string reload() = 0;
  virtual ClusterStatus status() const = 0;
  virtual const ReplicationStats& stats() const = 0;
};

}  // namespace lockd
