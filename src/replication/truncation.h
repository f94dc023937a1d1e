// Truncation erases the batches before the base, and compacts old revisions.
//
// First it moves the base. The transaction compares where the base was, so a late duplicate cannot
// move it back. Then it erases the batches before the base, a few hundred at a time, because
// appends wait while etcd erases. The next leader erases what a dead leader has left. Compaction is
// one truncation behind, so that a reader which has just begun still finds its revisions.
//
// Has no thread. One call is in flight at a time, and each is guarded by the term.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "replication/compaction.h"
#include "replication/etcd_client.h"
#include "replication/records.h"
#include "replication/rpc_timeouts.h"
#include "replication/term.h"

namespace lockd {

struct TruncationOptions {
  Duration retry{};
  std::int64_t batches_at_once = 500;
  // Compacts after this many revisions even if the base has not moved. Heartbeats count.
  etcd::Revision revisions_max = 20'000;
};

class Truncation {
 public:
  // The base was last known to be `base`, put at revision `base_moved`; 0: never.
  Truncation(etcd::Client& client, const EtcdKeys& keys, const TruncationOptions& options,
             const RpcTimeouts& timeouts, Compaction& compaction, Term& term, const BatchId& base,
             etcd::Revision base_moved);

  // Erases the batches before `base`.
  void begin(const BatchId& base) {
    next_base_ = base;
    step_ = Step::move_base;
  }
  bool is_idle() const { return step_ == Step::none; }
  // The base in etcd.
  BatchId base() const { return base_; }

  Time turn(Time now);

 private:
  enum class Step : std::uint8_t { none, move_base, find, erase, compact };

  void send(const etcd::Txn& txn);
  etcd::Txn base_move() const;
  bool has_moved(const etcd::Answer& answer);
  void next_step(const etcd::Answer& answer);

  etcd::Client& client_;
  const EtcdKeys& keys_;
  const TruncationOptions options_;
  const RpcTimeouts& timeouts_;
  Compaction& compaction_;
  Term& term_;

  Step step_ = Step::none;
  bool in_flight_ = false;
  Time next_try_{};
  BatchId base_;
  BatchId next_base_{};  // until the base is there
  etcd::Revision base_moved_;
  std::string erase_end_;
  etcd::Revision mark_;  // compacted when the next mark is set
};

}  // namespace lockd
