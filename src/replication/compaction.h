// Compacts etcd's store, which removes old revisions, and logs when etcd refuses to.
//
// A compaction affects the whole store, so newer versions of etcd allow it to the role root only. A
// server without that role relies on etcd's automatic compaction, and detects it: a revision whose
// compaction was refused is gone later. If it is still there when half of the store is in use, an
// operator must act before the store is full, so the refusal is logged as an error.
//
// Has no thread and never blocks. One call is in flight at a time.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "replication/etcd_client.h"
#include "replication/records.h"
#include "replication/rpc_timeouts.h"
#include "replication/telemetry.h"

namespace lockd {

class Compaction {
 public:
  // The least time between two log lines about refused compactions.
  static constexpr Duration kSilence = std::chrono::minutes(10);

  // All outlive it.
  Compaction(etcd::Client& client, const EtcdKeys& keys, const RpcTimeouts& timeouts,
             ReplicationStats& stats, ClusterLog log);

  // Requests a compaction that changes nothing, to find out whether etcd allows it to this server.
  // The store's revision is `newest` or later.
  void check_rights(etcd::Revision newest, Time now);
  // A failure needs no retry: the next compaction includes this one.
  void compact(etcd::Revision revision, Time now);
  bool is_in_flight() const { return in_flight_; }

 private:
  void request(etcd::Revision revision, Time now);
  void on_answer(const etcd::Answer& answer, Time now);
  void check_other_compactions(const std::string& refusal, Time now);
  void handle_rejection(const std::string& refusal, const etcd::Answer& seen, Time now);
  void measure(const std::string& refusal, Time now);
  void log_rejection(const std::string& refusal, Time now);

  etcd::Client& client_;
  const EtcdKeys& keys_;
  const RpcTimeouts& timeouts_;
  ReplicationStats& stats_;
  const ClusterLog log_;

  bool in_flight_ = false;
  bool is_check_ = false;
  etcd::Revision requested_ = 0;
  etcd::Revision newest_ = 0;   // when the rights were checked
  etcd::Revision refused_ = 0;  // earliest refused revision not known to be compacted; 0: none
  std::optional<Time> logged_at_{};
};

}  // namespace lockd
