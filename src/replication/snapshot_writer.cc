#include "replication/snapshot_writer.h"

#include <algorithm>
#include <utility>

namespace lockd {

Truncation::Truncation(ReplicationContext& context, const SnapshotOptions& options,
                       Compaction& compaction, LeaderGuard& guard, const BatchId& base,
                       etcd::Revision base_moved)
    : context_(context),
      options_(options),
      compaction_(compaction),
      guard_(guard),
      base_(base),
      base_moved_(base_moved),
      mark_(base_moved != 0 ? base_moved : guard.epoch()) {}

Time Truncation::turn(Time now) {
  if (in_flight_ || compaction_.is_in_flight() || !guard_.ended().empty()) return Time::never();
  if (step_ == Step::none && guard_.revision() - mark_ > options_.revisions_max) {
    step_ = Step::compact;
  }
  if (step_ == Step::none) return Time::never();
  if (now < next_try_) return next_try_;
  next_try_ = now + context_.retry;
  if (step_ == Step::compact) {
    step_ = Step::none;
    compaction_.compact(std::exchange(mark_, guard_.revision()), now);
    return Time::never();
  }
  in_flight_ = true;
  context_.execute(next_txn(), [this](const etcd::Answer& answer) {
    in_flight_ = false;
    if (guard_.check(answer) || has_moved(answer)) on_done(answer);
  });
  return Time::never();
}

etcd::Txn Truncation::next_txn() const {
  const EtcdKeys& keys = context_.keys;
  if (step_ == Step::erase) return guard_.txn({etcd::erase(keys.batches, erase_end_)});
  if (step_ == Step::find) {
    etcd::Operation some = etcd::get(keys.batches);
    some.range_end = keys.batch(base_);
    some.limit = options_.erase_at_once;
    some.keys_only = true;
    return guard_.txn({some});
  }
  etcd::Txn txn = guard_.txn({etcd::put(keys.base, to_text(next_base_))});
  txn.compare.push_back({keys.base, base_moved_});
  txn.otherwise.push_back(etcd::get(keys.base));
  return txn;
}

// The base was not where it was expected. Either an earlier try, whose answer was lost, has moved
// it. Or a former leader moved it while this node followed, and the next try compares that place.
bool Truncation::has_moved(const etcd::Answer& answer) {
  const bool is_done = answer.status == etcd::Answer::Status::done && guard_.ended().empty();
  if (step_ != Step::move_base || !is_done) return false;
  const std::vector<etcd::Entry>& base = answer.found.back();
  base_moved_ = base.empty() ? 0 : base.front().modified;
  return !base.empty() && base.front().value == to_text(next_base_);
}

void Truncation::on_done(const etcd::Answer& answer) {
  next_try_ = {};
  if (step_ == Step::move_base) {
    if (answer.succeeded) base_moved_ = answer.revision;
    base_ = next_base_;
    step_ = Step::find;
  } else if (step_ == Step::erase) {
    step_ = Step::find;
  } else if (answer.found.front().empty()) {
    step_ = Step::compact;
  } else {
    erase_end_ = answer.found.front().back().key + '\0';
    step_ = Step::erase;
  }
}

void SnapshotWriter::turn(PublishedJournal& journal) {
  const std::uint64_t sent = term_.sent_size();
  const std::uint64_t size_max = std::max(options_.after, 2 * last_size_);
  const bool is_due = wanted_.load(std::memory_order_acquire) || chain_size_ + sent > size_max;
  if (step_ == Step::none && truncation_.is_idle() && is_due) {
    wanted_.store(false, std::memory_order_relaxed);
    step_ = Step::begun;
    base_ = term_.next();
    begun_at_ = sent;
  }
  if (step_ == Step::begun || step_ == Step::continued) {
    AppendBuffer& pending = *journal.pending();
    journal.with_source([&](Journal::Source& source) {
      while (step_ != Step::described && pending.size() < options_.describe_ahead) {
        const bool more = source.describe_some(step_ == Step::begun);
        step_ = more ? Step::continued : Step::described;
        end_ = pending.end();
      }
    });
  }
  if (step_ != Step::described || term_.committed() < end_) return;
  step_ = Step::none;
  last_size_ = sent - begun_at_;
  chain_size_ = std::uint64_t{0} - begun_at_;  // wraps; sent_size() wraps it back
  truncation_.begin(base_);
  context_.stats.snapshots.add();
}

}  // namespace lockd
