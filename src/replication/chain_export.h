// Exports a cluster's chain: reads it, and writes the holds as a new journal in files. The files
// are a backup, or the journal of a server without a cluster.
//
// It follows the chain as a standby does, up to the head at the time when it began. It only reads
// from etcd: it does not join the cluster, and the servers do not see it.
//
// Has no thread and never blocks: callbacks of the client update members, and turn() acts on them.
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

// An export or import fails if etcd does not answer for this long.
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

  // Takes the next step, and returns after how long to call again unless etcd answers before.
  Duration turn();
  // The whole chain has been read.
  bool is_done() const { return done_; }
  // Why the export failed; empty unless it did.
  const std::string& error() const { return error_; }

  // etcd's revision at which the chain was read.
  etcd::Revision revision() const { return revision_; }
  // Writes a new journal of one segment, and syncs it. A lease keeps the time that was left of it
  // when it was read. Throws JournalError.
  StateSummary write(Storage& storage);

 private:
  void begin();
  void finish();
  void on_loss();

  etcd::Client& client_;
  const Clock& clock_;
  const ChainExportOptions options_;
  const EtcdKeys keys_;
  ReplicationStats stats_;
  std::string last_error_;  // etcd's
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
