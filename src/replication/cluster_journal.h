// A journal that servers share, as a server sees it; whichever stands behind it.
//
// It is over when its state is failed: status() then says why. Any thread may call anything.
#pragma once

#include <cstdint>
#include <string>
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
  CurrentLeader leader{};    // that it follows, or itself
  Position applied = 0;      // how far along the chain it is
  std::uint64_t behind = 0;  // changes of the chain that etcd had, when last looked, and it had not
  std::vector<Member> members{};  // of the cluster, itself among them
  std::string over{};             // why it is over; empty while it is not
  bool refused = false;           // and another journal would fare no better
};

class ClusterJournal : public Journal {
 public:
  // The time that the engine must be given.
  virtual Clock& clock() const = 0;
  // Hands over as soon as all that was appended is acknowledged.
  virtual void resign() = 0;
  // It leads, as far as it knows, but could not make sure for so long that another may: whoever
  // waits for it to say anything may wait for ever, and should ask elsewhere.
  virtual bool is_cut_off() const noexcept = 0;
  virtual ClusterStatus status() const = 0;
  virtual const ReplicationStats& stats() const = 0;
};

}  // namespace lockd
