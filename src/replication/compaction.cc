#include "replication/compaction.h"

#include <utility>

namespace lockd {

using etcd::Answer;
using Status = Answer::Status;

namespace {

// The revision of an empty store, which no reader needs.
constexpr etcd::Revision kFirstRevision = 1;
// etcd's default quota, for versions that do not report theirs.
constexpr std::uint64_t kQuotaUsual = std::uint64_t{2} << 30;

bool is_half_full(const etcd::StoreSize& size) {
  const std::uint64_t used = size.needed != 0 ? size.needed : size.taken;
  return used > (size.quota != 0 ? size.quota : kQuotaUsual) / 2;
}

}  // namespace

Compaction::Compaction(etcd::Client& client, const EtcdKeys& keys, const RpcTimeouts& timeouts,
                       ReplicationStats& stats, ClusterLog log)
    : client_(client), keys_(keys), timeouts_(timeouts), stats_(stats), log_(std::move(log)) {}

void Compaction::check_rights(etcd::Revision newest, Time now) {
  is_check_ = true;
  newest_ = newest;
  request(kFirstRevision, now);
}

void Compaction::compact(etcd::Revision revision, Time now) {
  is_check_ = false;
  request(revision, now);
}

void Compaction::request(etcd::Revision revision, Time now) {
  in_flight_ = true;
  requested_ = revision;
  client_.compact(revision, timeouts_.deadline(),
                  [this, now](const Answer& answer) { on_answer(answer, now); });
}

void Compaction::on_answer(const Answer& answer, Time now) {
  in_flight_ = false;
  if (answer.status == Status::refused) return check_other_compactions(answer.message, now);
  if (answer.status != Status::done || is_check_) return;
  stats_.compactions.add();
  refused_ = 0;
}

// A read at a revision that is older than the compacted one fails.
void Compaction::check_other_compactions(const std::string& refusal, Time now) {
  in_flight_ = true;
  if (refused_ == 0) refused_ = requested_;
  etcd::Operation look = etcd::get(keys_.head);
  look.keys_only = true;
  look.revision = refused_;
  client_.execute({.then = {look}}, timeouts_.deadline(), [this, refusal, now](const Answer& seen) {
    in_flight_ = false;
    handle_rejection(refusal, seen, now);
  });
}

void Compaction::handle_rejection(const std::string& refusal, const Answer& seen, Time now) {
  if (seen.status == Status::compacted) {  // by another client, since then
    refused_ = is_check_ ? newest_ : requested_;
    if (std::exchange(logged_at_, {}).has_value()) {
      log_(Severity::info, "etcd: compacted by another client");
    }
  } else if (seen.status == Status::done && is_check_) {
    refused_ = newest_;
    log_rejection(refusal, now);
  } else if (seen.status == Status::done) {
    measure(refusal, now);
  }
}

// If etcd does not answer, the next refusal measures again.
void Compaction::measure(const std::string& refusal, Time now) {
  client_.measure(timeouts_.deadline(), [this, refusal, now](const etcd::StoreSize& size) {
    if (!is_half_full(size)) return;
    stats_.compactions_refused.add();
    log_rejection(refusal, now);
  });
}

void Compaction::log_rejection(const std::string& refusal, Time now) {
  if (logged_at_.has_value() && now < *logged_at_ + kSilence && !is_check_) return;
  const std::string_view consequence =
      is_check_
          ? "this server may not compact it, which needs the role root; it must do so by "
            "itself (--auto-compaction-retention), or it fills up"
          : "no compaction has happened since, and half of the quota is in use; when the "
            "store is full etcd accepts no writes; give this server's user the role root, or have "
            "etcd do it by itself (--auto-compaction-retention)";
  log_(is_check_ ? Severity::warning : Severity::error,
       "etcd: compaction is refused (" + refusal + "): " + std::string(consequence));
  if (!is_check_) logged_at_ = now;
}

}  // namespace lockd
