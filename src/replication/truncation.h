// Gets rid of what is not needed any more: batches before the base, and old revisions.
//
// The base is moved first, from where it was known to be: one that is sent again must not move it
// back, should it arrive after the next. Then the batches before it go, a few hundred at a time, so
// that nobody waits for etcd while it erases many; whatever is left when a leader dies goes with
// the next one's. Compaction is one step behind: whoever has just begun to read still finds what it
// needs.
//
// Like Term, of which it is a part: without a thread, one call on its way, everything guarded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "replication/compaction.h"
#include "replication/etcd_client.h"
#include "replication/patience.h"
#include "replication/records.h"
#include "replication/term.h"

namespace lockd {

struct TruncationOptions {
  Duration retry{};
  std::int64_t batches_at_once = 500;
  // Of revisions: compacted after so many, though no base has moved. Heartbeats count.
  etcd::Revision revisions_max = 20'000;
};

class Truncation {
 public:
  // The base is `base`, which was last moved at `base_moved`, as far as is known; 0: never.
  Truncation(etcd::Client& client, const EtcdKeys& keys, const TruncationOptions& options,
             const Patience& patience, Compaction& compaction, Term& term, const BatchId& base,
             etcd::Revision base_moved);

  // Batches before `base` are needless.
  void begin(const BatchId& base) {
    next_base_ = base;
    step_ = Step::move_base;
  }
  bool is_idle() const { return step_ == Step::none; }
  // As etcd has it.
  BatchId base() const { return base_; }

  Time turn(Time now);

 private:
  enum class Step : std::uint8_t { none, move_base, find, erase, compact };

  void send(const etcd::Txn& txn);
  etcd::Txn base_move() const;
  bool has_moved(const etcd::Answer& answer);
  void go_on(const etcd::Answer& answer);

  etcd::Client& client_;
  const EtcdKeys& keys_;
  const TruncationOptions options_;
  const Patience& patience_;
  Compaction& compaction_;
  Term& term_;

  Step step_ = Step::none;
  bool on_its_way_ = false;
  Time next_try_{};
  BatchId base_;
  BatchId next_base_{};  // before it has been moved there
  etcd::Revision base_moved_;
  std::string erase_end_;
  etcd::Revision mark_;  // compacted when the next one is set
};

}  // namespace lockd
