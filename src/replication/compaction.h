// Keeps etcd's store small and usable: Compaction removes old revisions, EtcdMonitor watches the
// store's size and etcd's latency.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "replication/replication_context.h"

namespace lockd {

// Compacts etcd's store, and logs when etcd refuses to.
//
// Newer versions of etcd allow a compaction to the role root only. A server without that role
// relies on etcd's automatic compaction, and detects it: a revision whose compaction was refused is
// gone later. If it is still there when half of the store is in use, the refusal is logged as an
// error, because an operator must act before the store is full. One call is in flight at a time.
class Compaction {
 public:
  // The least time between two log lines about refused compactions.
  static constexpr Duration kSilence = std::chrono::minutes(10);

  explicit Compaction(ReplicationContext& context) : context_(context) {}

  // Requests a compaction that changes nothing, to find out whether etcd allows it to this server.
  // The store's revision is `newest` or later. Only the first call does it.
  void check_rights(etcd::Revision newest, Time now);
  // A failure needs no retry: the next compaction includes this one.
  void compact(etcd::Revision revision, Time now);
  bool is_in_flight() const { return in_flight_; }

 private:
  void request(etcd::Revision revision, Time now);
  void on_refusal(const std::string& refusal, Time now);
  void on_not_compacted(const std::string& refusal, Time now);
  void log_refusal(const std::string& refusal, Time now);

  ReplicationContext& context_;
  bool rights_checked_ = false;
  bool in_flight_ = false;
  bool is_check_ = false;
  etcd::Revision requested_ = 0;
  etcd::Revision newest_ = 0;   // when the rights were checked
  etcd::Revision refused_ = 0;  // earliest refused revision not known to be compacted; 0: none
  std::optional<Time> logged_at_{};
};

// Measures the size of etcd's store for metrics, and warns if etcd is too slow for detect.
class EtcdMonitor {
 public:
  explicit EtcdMonitor(ReplicationContext& context) : context_(context) {}

  // Returns when to call again.
  Time turn(Time now);

 private:
  void warn_if_slow(Time now);

  ReplicationContext& context_;
  Time next_measure_{};
  std::optional<Time> warned_at_{};
};

}  // namespace lockd
