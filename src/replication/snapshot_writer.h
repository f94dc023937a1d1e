// SnapshotWriter replaces a long chain by a snapshot: the engine appends a description of its
// state, interleaved with other events, and then the batches before it are truncated.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "replication/compaction.h"
#include "replication/published_journal.h"
#include "replication/term.h"

namespace lockd {

struct SnapshotOptions {
  // A chain longer than this, and than twice the last snapshot, is replaced by a new snapshot.
  std::uint64_t after = std::uint64_t{64} << 20;
  std::size_t describe_ahead = std::size_t{128} << 10;  // of a snapshot, in one turn
  std::int64_t erase_at_once = 500;
  // Compacts after this many revisions even if the base has not moved. Heartbeats count.
  etcd::Revision revisions_max = 20'000;
};

// Truncation erases the batches before the base, and compacts old revisions. It moves the base
// first, and compares where that was, so a late duplicate cannot move it back. It erases a few
// hundred batches at a time, because appends wait while etcd erases. Compaction is one truncation
// behind, so that a reader which has just begun still finds its revisions.
class Truncation {
 public:
  // The base was last known to be `base`, put at revision `base_moved`; 0: never.
  Truncation(ReplicationContext& context, const SnapshotOptions& options, Compaction& compaction,
             LeaderGuard& guard, const BatchId& base, etcd::Revision base_moved);

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

  etcd::Txn next_txn() const;
  bool has_moved(const etcd::Answer& answer);
  void on_done(const etcd::Answer& answer);

  ReplicationContext& context_;
  const SnapshotOptions options_;
  Compaction& compaction_;
  LeaderGuard& guard_;

  Step step_ = Step::none;
  bool in_flight_ = false;
  Time next_try_{};
  BatchId base_;
  BatchId next_base_{};  // until the base is there
  etcd::Revision base_moved_;
  std::string erase_end_;
  etcd::Revision mark_;  // compacted when the next mark is set
};

class SnapshotWriter {
 public:
  // `followed` is the size of all batches that this node has followed, so a node that followed for
  // long writes its first snapshot soon. All references outlive it.
  SnapshotWriter(ReplicationContext& context, const SnapshotOptions& options,
                 Compaction& compaction, Term& term, const BatchId& base, etcd::Revision base_moved,
                 std::uint64_t followed)
      : context_(context),
        options_(options),
        term_(term),
        truncation_(context, options, compaction, term.guard(), base, base_moved),
        chain_size_(followed) {}

  // Requests a snapshot. It begins later than one that is being written. Any thread.
  void request() { wanted_.store(true, std::memory_order_release); }

  void turn(PublishedJournal& journal);
  // Returns when to call again.
  Time truncate(Time now) { return truncation_.turn(now); }
  BatchId base() const { return truncation_.base(); }

 private:
  enum class Step : std::uint8_t { none, begun, continued, described };

  ReplicationContext& context_;
  const SnapshotOptions options_;
  Term& term_;
  Truncation truncation_;
  std::atomic<bool> wanted_{false};
  Step step_ = Step::none;
  BatchId base_{};
  Position end_ = 0;
  std::uint64_t begun_at_ = 0;  // in the term's sent_size()
  std::uint64_t last_size_ = 0;
  std::uint64_t chain_size_;  // since the base, less the term's sent_size()
};

}  // namespace lockd
