#include "replication/truncation.h"

#include <utility>

namespace lockd {

using etcd::Answer;

Truncation::Truncation(etcd::Client& client, const EtcdKeys& keys, const TruncationOptions& options,
                       const RpcTimeouts& timeouts, Compaction& compaction, Term& term,
                       const BatchId& base, etcd::Revision base_moved)
    : client_(client),
      keys_(keys),
      options_(options),
      timeouts_(timeouts),
      compaction_(compaction),
      term_(term),
      base_(base),
      base_moved_(base_moved),
      mark_(base_moved != 0 ? base_moved : term.epoch()) {}

Time Truncation::turn(Time now) {
  if (in_flight_ || compaction_.is_in_flight() || !term_.ended().empty()) return Time::never();
  if (step_ == Step::none && term_.revision() - mark_ > options_.revisions_max) {
    step_ = Step::compact;
  }
  if (step_ == Step::none) return Time::never();
  if (now < next_try_) return next_try_;
  next_try_ = now + options_.retry;
  switch (step_) {
    case Step::move_base: send(base_move()); break;
    case Step::find: {
      etcd::Operation some = etcd::get(keys_.batches);
      some.range_end = keys_.batch(base_);
      some.limit = options_.batches_at_once;
      some.keys_only = true;
      send(term_.guarded({some}));
      break;
    }
    case Step::erase: send(term_.guarded({etcd::erase(keys_.batches, erase_end_)})); break;
    case Step::compact:
      step_ = Step::none;
      compaction_.compact(std::exchange(mark_, term_.revision()), now);
      break;
    case Step::none: break;
  }
  return Time::never();
}

void Truncation::send(const etcd::Txn& txn) {
  in_flight_ = true;
  client_.execute(txn, timeouts_.deadline(), [this](const Answer& answer) {
    in_flight_ = false;
    if (!term_.check_guard(answer) && !has_moved(answer)) return;
    next_try_ = {};
    next_step(answer);
  });
}

etcd::Txn Truncation::base_move() const {
  etcd::Txn txn = term_.guarded({etcd::put(keys_.base, to_text(next_base_))});
  txn.compare.push_back({keys_.base, base_moved_});
  txn.otherwise.push_back(etcd::get(keys_.base));
  return txn;
}

// The base was not where it was expected. Either an earlier try, whose answer was lost, has moved
// it. Or a former leader moved it while this node followed, and the next try compares that place.
bool Truncation::has_moved(const Answer& answer) {
  if (step_ != Step::move_base || answer.status != Answer::Status::done) return false;
  if (!term_.ended().empty()) return false;
  const std::vector<etcd::Entry>& base = answer.found.back();
  base_moved_ = base.empty() ? 0 : base.front().modified;
  return !base.empty() && base.front().value == to_text(next_base_);
}

void Truncation::next_step(const Answer& answer) {
  switch (step_) {
    case Step::move_base:
      if (answer.succeeded) base_moved_ = answer.revision;
      base_ = next_base_;
      step_ = Step::find;
      break;
    case Step::find:
      if (answer.found.front().empty()) {
        step_ = Step::compact;
      } else {
        erase_end_ = answer.found.front().back().key + '\0';
        step_ = Step::erase;
      }
      break;
    case Step::erase: step_ = Step::find; break;
    case Step::compact:
    case Step::none: break;
  }
}

}  // namespace lockd
