// A journal that servers share, as a server sees it; whichever stands behind it.
//
// Its life is over when its state is failed: status() then says why. Any thread may call anything.
#pragma once

#include <string>

#include "ha/leader_record.h"
#include "ha/tally.h"
#include "lockd/clock.h"
#include "lockd/journal.h"

namespace lockd {

// What a node knows of its cluster.
struct ClusterStatus {
  bool leads = false;
  CurrentLeader leader{};  // that it follows, or itself
  Position applied = 0;    // how far along the chain it is
  std::string over{};      // why its life is over; empty while it is not
  bool refused = false;    // and no other life would fare better
};

class ClusterJournal : public Journal {
 public:
  // The time that the engine must be given.
  virtual Clock& clock() const = 0;
  // Hands over as soon as all that was appended is acknowledged.
  virtual void resign() = 0;
  virtual ClusterStatus status() const = 0;
  virtual const Tally& tally() const = 0;
};

}  // namespace lockd
