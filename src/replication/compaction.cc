#include "replication/compaction.h"

#include <utility>

namespace lockd {

using etcd::Answer;
using Status = Answer::Status;

namespace {

// Of an empty store: nobody needs it.
constexpr etcd::Revision kFirstRevision = 1;
// What etcd's store may take, where neither etcd nor whoever started it says so.
constexpr std::uint64_t kQuotaUsual = std::uint64_t{2} << 30;

bool is_half_full(const etcd::StoreSize& size) {
  const std::uint64_t used = size.needed != 0 ? size.needed : size.taken;
  return used > (size.quota != 0 ? size.quota : kQuotaUsual) / 2;
}

}  // namespace

Compaction::Compaction(etcd::Client& client, const EtcdKeys& keys, const Patience& patience,
                       ReplicationStats& stats, ClusterLog log)
    : client_(client), keys_(keys), patience_(patience), stats_(stats), log_(std::move(log)) {}

void Compaction::check_rights(etcd::Revision newest, Time now) {
  is_check_ = true;
  newest_ = newest;
  ask(kFirstRevision, now);
}

void Compaction::compact(etcd::Revision revision, Time now) {
  is_check_ = false;
  ask(revision, now);
}

void Compaction::ask(etcd::Revision revision, Time now) {
  on_its_way_ = true;
  asked_ = revision;
  client_.compact(revision, patience_.deadline(),
                  [this, now](const Answer& answer) { take(answer, now); });
}

void Compaction::take(const Answer& answer, Time now) {
  on_its_way_ = false;
  if (answer.status == Status::refused) return look_for_others(answer.message, now);
  if (answer.status != Status::done || is_check_) return;
  stats_.compactions.add();
  refused_ = 0;
}

// What is read at a revision before the compacted one is gone.
void Compaction::look_for_others(const std::string& refusal, Time now) {
  on_its_way_ = true;
  if (refused_ == 0) refused_ = asked_;
  etcd::Operation look = etcd::get(keys_.head);
  look.keys_only = true;
  look.revision = refused_;
  client_.execute({.then = {look}}, patience_.deadline(), [this, refusal, now](const Answer& seen) {
    on_its_way_ = false;
    take_refusal(refusal, seen, now);
  });
}

void Compaction::take_refusal(const std::string& refusal, const Answer& seen, Time now) {
  if (seen.status == Status::compacted) {  // by others, since
    refused_ = is_check_ ? newest_ : asked_;
    if (std::exchange(told_, {}).has_value()) {
      log_(Severity::info, "etcd: is compacted, though not by this server");
    }
  } else if (seen.status == Status::done && is_check_) {
    refused_ = newest_;
    tell(refusal, now);
  } else if (seen.status == Status::done) {
    measure(refusal, now);
  }
}

// If that has no answer, the next refusal asks again.
void Compaction::measure(const std::string& refusal, Time now) {
  client_.measure(patience_.deadline(), [this, refusal, now](const etcd::StoreSize& size) {
    if (!is_half_full(size)) return;
    stats_.compactions_refused.add();
    tell(refusal, now);
  });
}

void Compaction::tell(const std::string& refusal, Time now) {
  if (told_.has_value() && now < *told_ + kSilence && !is_check_) return;
  const std::string_view consequence =
      is_check_ ? "this server may not compact it, which needs the role root; it must do so by "
                  "itself (--auto-compaction-retention), or it fills up"
                : "nobody has compacted it since, and half of what it may take is in use; when it "
                  "is full it takes nothing more; give this server's user the role root, or have "
                  "etcd do it by itself (--auto-compaction-retention)";
  log_(is_check_ ? Severity::warning : Severity::error,
       "etcd: compaction is refused (" + refusal + "): " + std::string(consequence));
  if (!is_check_) told_ = now;
}

}  // namespace lockd
