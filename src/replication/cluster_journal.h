// A journal that servers share, as a server sees it; whichever stands behind it.
//
// It is over when its state is failed: status() then says why. Any thread may call anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockd/clock.h"
#include "lockd/journal.h"
#include "replication/membership.h"
#include "replication/records.h"
#include "replication/telemetry.h"

namespace lockd {

// What a node knows of its cluster.
struct ClusterStatus {
  bool leads = false;
  bool certain = false;    // and nobody else does
  CurrentLeader leader{};  // that it follows, or itself
  std::string settings{};  // of the last leader: in force (shared_settings.h)
  std::string own_settings{};
  Duration detect{};            // of those in force
  Position applied = 0;         // how far along the chain it is
  BatchId last_batch{};         // the last that it has applied
  etcd::Revision revision = 0;  // of etcd's store, up to which that is
  // The ends of the chain, as etcd had them when it was last looked at.
  BatchId base{};
  BatchId head{};
  std::uint64_t behind = 0;  // changes of the chain that etcd had, when last looked, and it had not
  bool caught_up = false;    // it had everything that etcd had, once
  std::optional<Time> lags_since{};  // it knows of something since then that it has not
  Time answered{};                   // when etcd did last; zero: never
  std::string unreadable{};          // what of the chain it cannot read; empty: it can
  BatchId unreadable_batch{};        // none: it is something else
  std::string_view not_written{};    // why etcd takes nothing from it; empty: it does
  std::string_view not_ready{};      // why; empty: it is
  std::vector<Member> members{};     // of the cluster, itself among them
  std::string over{};                // why it is over; empty while it is not
  bool refused = false;              // and another journal would fare no better
};

// Whether it could lead at once, should the leader die; and of a leader, whether etcd lets it.
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
  // The time that the engine must be given.
  virtual Clock& clock() const = 0;
  // Hands over as soon as all that was appended is acknowledged.
  virtual void resign() = 0;
  // See ReplicatedJournal.
  virtual bool transfer(const std::string& node) = 0;
  virtual bool begin_snapshot() = 0;
  // It leads, as far as it knows, but could not make sure for so long that another may: whoever
  // waits for it to say anything may wait for ever, and should ask elsewhere.
  virtual bool is_cut_off() const noexcept = 0;
  // Takes certificates and passwords as they are now. What is wrong with them; empty: nothing.
  virtual std::string reload() = 0;
  virtual ClusterStatus status() const = 0;
  virtual const ReplicationStats& stats() const = 0;
};

}  // namespace lockd
