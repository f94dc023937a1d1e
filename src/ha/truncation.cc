#include "ha/truncation.h"

#include <utility>

namespace lockd {

using etcd::Answer;

Truncation::Truncation(etcd::Client& client, const Keys& keys, const TruncationOptions& options,
                       Tally& tally, Term& term, etcd::Revision readable_from)
    : client_(client),
      keys_(keys),
      options_(options),
      tally_(tally),
      term_(term),
      mark_(readable_from) {}

Time Truncation::turn(Time now) {
  if (on_its_way_ || !term_.ended().empty()) return Time::never();
  if (step_ == Step::none && term_.revision() - mark_ > options_.revisions_max) {
    step_ = Step::compact;
  }
  if (step_ == Step::none) return Time::never();
  if (now < next_try_) return next_try_;
  on_its_way_ = true;
  next_try_ = now + options_.retry;
  switch (step_) {
    case Step::move_base: send(term_.guarded({etcd::put(keys_.base, to_text(base_))})); break;
    case Step::find: {
      etcd::Operation some = etcd::get(keys_.batches);
      some.range_end = keys_.batch(base_);
      some.limit = options_.batches_at_once;
      some.keys_only = true;
      send(term_.guarded({some}));
      break;
    }
    case Step::erase: send(term_.guarded({etcd::erase(keys_.batches, erase_end_)})); break;
    case Step::compact: compact(); break;
    case Step::none: break;
  }
  return Time::never();
}

void Truncation::send(const etcd::Txn& txn) {
  client_.execute(txn, options_.rpc, [this](const Answer& answer) {
    on_its_way_ = false;
    if (!term_.take_guarded(answer)) return;
    next_try_ = {};
    go_on(answer);
  });
}

void Truncation::go_on(const Answer& answer) {
  switch (step_) {
    case Step::move_base: step_ = Step::find; break;
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

// Whatever becomes of it: if it is not done now, then the next time.
void Truncation::compact() {
  step_ = Step::none;
  const etcd::Revision revision = std::exchange(mark_, term_.revision());
  client_.compact(revision, options_.rpc, [this](const Answer& answer) {
    on_its_way_ = false;
    if (answer.status == Answer::Status::done) tally_.compactions.add();
  });
}

}  // namespace lockd
