// Reads a cluster's chain, and writes what is held as a new journal in files: a backup, or what a
// server without a cluster starts from.
//
// It follows as a standby does, up to where the head was when it began. Of etcd it only reads: it
// takes no part in the cluster, and nobody hears of it.
//
// Without a thread, and never waits: callbacks of the client's note down, turn() goes on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "journal/storage.h"
#include "lockd/clock.h"
#include "replication/etcd_client.h"
#include "replication/follower.h"
#include "replication/held_state.h"
#include "replication/records.h"
#include "replication/telemetry.h"

namespace lockd {

// For so long at most etcd may have nothing to say, to whoever copies a chain.
inline constexpr Duration kCopySilenceMax = std::chrono::seconds(30);

struct ChainExportOptions {
  std::string cluster;
  Fence fence_floor = 0;
  ClusterLog log = [](Severity, std::string_view) {};
};

class ChainExport {
 public:
  // `client` and `clock` outlive it.
  ChainExport(etcd::Client& client, const Clock& clock, ChainExportOptions options);

  // Does what there is to do, and returns how long it may be until the next, unless something is
  // heard before.
  Duration turn();
  // All of it was read.
  bool is_done() const { return done_; }
  // Why it cannot be; empty while it can.
  const std::string& error() const { return error_; }

  // Where etcd was then.
  etcd::Revision revision() const { return revision_; }
  // As a new journal, in one segment that stands alone, and all of it durable. Leases go on from
  // what was left of them when they were read. Throws JournalError.
  StateSummary write(Storage& storage);

 private:
  void begin();
  void take_up();
  void take_loss();

  etcd::Client& client_;
  const Clock& clock_;
  const ChainExportOptions options_;
  const EtcdKeys keys_;
  ReplicationStats stats_;
  std::string complaint_;  // of etcd, the last
  EtcdErrorLog errors_;

  std::optional<HeldState> state_;
  std::optional<Follower> follower_;
  int losses_ = 0;
  std::uint64_t progress_ = 0;
  Time progressed_;
  etcd::Revision revision_ = 0;
  bool done_ = false;
  std::string error_;
};

}  // namespace lockd
