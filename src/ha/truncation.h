// Gets rid of what is not needed any more: batches before the base, and old revisions.
//
// The base is moved first; then the batches before it go, a few hundred at a time, so that nobody
// waits for etcd while it erases many; whatever is left when a leader dies goes with the next
// one's. Compaction is one step behind: whoever has just begun to read still finds what it needs.
//
// Like Term, of which it is a part: without a thread, one call on its way, everything guarded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ha/etcd_client.h"
#include "ha/place.h"
#include "ha/tally.h"
#include "ha/term.h"

namespace lockd {

struct TruncationOptions {
  Duration rpc{};
  Duration retry{};
  std::int64_t batches_at_once = 500;
  // Of revisions: compacted after so many, though no base has moved. An idle leader's beats count.
  etcd::Revision revisions_max = 20'000;
};

class Truncation {
 public:
  // `readable_from`: a revision from which on others may be reading.
  Truncation(etcd::Client& client, const Keys& keys, const TruncationOptions& options, Tally& tally,
             Term& term, etcd::Revision readable_from);

  // Batches before `base` are needless.
  void begin(const Place& base) {
    base_ = base;
    step_ = Step::move_base;
  }
  bool is_idle() const { return step_ == Step::none; }

  Time turn(Time now);

 private:
  enum class Step : std::uint8_t { none, move_base, find, erase, compact };

  void send(const etcd::Txn& txn);
  void go_on(const etcd::Answer& answer);
  void compact();

  etcd::Client& client_;
  const Keys& keys_;
  const TruncationOptions options_;
  Tally& tally_;
  Term& term_;

  Step step_ = Step::none;
  bool on_its_way_ = false;
  Time next_try_{};
  Place base_{};
  std::string erase_end_;
  etcd::Revision mark_;  // compacted when the next one is set
};

}  // namespace lockd
