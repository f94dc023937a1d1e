#include "replication/compaction.h"

#include <utility>

namespace lockd {

using Status = etcd::Answer::Status;

namespace {

// The revision of an empty store, which no reader needs.
constexpr etcd::Revision kFirstRevision = 1;
// etcd's default quota, for versions that do not report theirs.
constexpr std::uint64_t kQuotaUsual = std::uint64_t{2} << 30;
constexpr Duration kBetweenMeasures = std::chrono::seconds(10);
constexpr Duration kBetweenWarnings = std::chrono::minutes(10);

bool is_half_full(const etcd::StoreSize& size) {
  const std::uint64_t used = size.needed != 0 ? size.needed : size.taken;
  return used > (size.quota != 0 ? size.quota : kQuotaUsual) / 2;
}

std::string in_ms(Duration time) {
  using std::chrono::milliseconds;
  return std::to_string(std::chrono::duration_cast<milliseconds>(time).count()) + " ms";
}

}  // namespace

void Compaction::check_rights(etcd::Revision newest, Time now) {
  if (std::exchange(rights_checked_, true)) return;
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
  const auto on_answer = [this, now](const etcd::Answer& answer) {
    in_flight_ = false;
    if (answer.status == Status::refused) return on_refusal(answer.message, now);
    if (answer.status != Status::done || is_check_) return;
    context_.stats.compactions.add();
    refused_ = 0;
  };
  context_.client.compact(revision, context_.timeouts.deadline(), on_answer);
}

// Reads at the earliest refused revision, which fails if another client has compacted it.
void Compaction::on_refusal(const std::string& refusal, Time now) {
  in_flight_ = true;
  if (refused_ == 0) refused_ = requested_;
  etcd::Operation read = etcd::get(context_.keys.head);
  read.keys_only = true;
  read.revision = refused_;
  context_.execute({.then = {read}}, [this, refusal, now](const etcd::Answer& answer) {
    in_flight_ = false;
    if (answer.status == Status::done) return on_not_compacted(refusal, now);
    if (answer.status != Status::compacted) return;
    refused_ = is_check_ ? newest_ : requested_;
    if (!std::exchange(logged_at_, {}).has_value()) return;
    context_.log(Severity::info, "etcd: compacted by another client");
  });
}

// If etcd does not answer, the next refusal measures again.
void Compaction::on_not_compacted(const std::string& refusal, Time now) {
  if (is_check_) {
    refused_ = newest_;
    return log_refusal(refusal, now);
  }
  const auto on_size = [this, refusal, now](const etcd::StoreSize& size) {
    if (!is_half_full(size)) return;
    context_.stats.compactions_refused.add();
    if (!logged_at_.has_value() || now >= *logged_at_ + kSilence) log_refusal(refusal, now);
  };
  context_.client.measure(context_.timeouts.deadline(), on_size);
}

void Compaction::log_refusal(const std::string& refusal, Time now) {
  const std::string_view consequence =
      is_check_ ? "this server may not compact it, which needs the role root; it must do so by "
                  "itself (--auto-compaction-retention), or it fills up"
                : "no compaction has happened since, and half of the quota is in use; when the "
                  "store is full etcd accepts no writes; give this server's user the role root, or "
                  "have etcd do it by itself (--auto-compaction-retention)";
  context_.log(is_check_ ? Severity::warning : Severity::error,
               "etcd: compaction is refused (" + refusal + "): " + std::string(consequence));
  if (!is_check_) logged_at_ = now;
}

Time EtcdMonitor::turn(Time now) {
  warn_if_slow(now);
  if (now < next_measure_) return next_measure_;
  next_measure_ = now + kBetweenMeasures;
  context_.client.measure(context_.timeouts.deadline(), [this](const etcd::StoreSize& size) {
    context_.stats.store_bytes = size.taken;
    context_.stats.store_bytes_needed = size.needed;
    context_.stats.store_quota_bytes = size.quota;
  });
  return next_measure_;
}

// A standby accepts answers within 0.5 detect. A leader is certain all the time if answers take no
// more than 0.6 detect.
void EtcdMonitor::warn_if_slow(Time now) {
  const Duration usual = context_.timeouts.usual();
  const Duration detect = context_.timeouts.detect();
  if (usual <= detect * 2 / 5 || (warned_at_ && now < *warned_at_ + kBetweenWarnings)) return;
  warned_at_ = now;
  context_.log(Severity::warning, "etcd: takes " + in_ms(usual) + " to answer, which a detect of " +
                                      in_ms(detect) + " is too short for; it should be " +
                                      in_ms(usual * 5 / 2) + " or more, on all servers");
}

}  // namespace lockd
