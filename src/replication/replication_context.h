// ReplicationContext is what the objects of one journal share: the connection to etcd, timeouts,
// counters and log.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/counter.h"
#include "lockd/histogram.h"
#include "replication/etcd_client.h"
#include "replication/records.h"
#include "replication/rpc_timeouts.h"

namespace lockd {

enum class Severity {
  info,
  warning,  // the server continues or restarts its journal
  error,    // the server cannot take part, or an operator must act
};
using ClusterLog = std::function<void(Severity, std::string_view)>;

// Logs each error of etcd once, until etcd answers again.
class EtcdErrorLog {
 public:
  explicit EtcdErrorLog(ClusterLog log) : log_(std::move(log)) {}

  // For the answers of calls that must succeed.
  void record(const etcd::Answer& answer) {
    if (answer.status == etcd::Answer::Status::done) {
      if (!logged_.empty()) log_(Severity::info, "etcd: answers again");
      logged_.clear();
    } else if (logged_.size() < kLoggedMax && logged_.insert(answer.message).second) {
      log_(Severity::warning, "etcd: " + answer.message);
    }
  }

  // For a write that etcd rejects although it may accept others.
  void log_rejection(std::string_view what, const etcd::Answer& answer) {
    log_(Severity::error,
         "etcd: refuses " + std::string(what) + ": " + answer.message +
             "; no client gets an answer until etcd accepts it, or this server "
             "gives up the lead. If it is too large, raise --max-request-bytes of etcd");
  }

 private:
  static constexpr std::size_t kLoggedMax = 8;

  const ClusterLog log_;
  std::set<std::string> logged_;
};

// Written by the journal's thread, read by any thread.
struct ReplicationStats {
  Counter starts;      // of the journal: the first one, and each restart
  Counter unreadable;  // journals that ended because the chain was unreadable
  Counter batches_followed;
  Counter batches_repeated;  // delivered again by the watch
  Counter watches;           // opened
  Counter campaigns;
  Counter terms;    // campaigns won, and a first batch appended
  Counter appends;  // acknowledged by etcd
  Counter append_bytes;
  SharedHistogram append_time;  // from the first send to the answer
  Counter resends;              // of batches without an answer
  Counter resolved;             // resends that found the batch in the chain
  Counter lapses;               // answers that came too late to confirm leadership
  Counter snapshots;
  Counter compactions;
  Counter compactions_refused;  // with half of the quota in use and no other compaction

  // Unreadable chains in a row; reset when a journal has caught up.
  std::atomic<std::uint32_t> unreadable_in_a_row{0};

  // etcd's store at the last measurement; 0 if etcd does not report it.
  std::atomic<std::uint64_t> store_bytes{0};
  std::atomic<std::uint64_t> store_bytes_needed{0};
  std::atomic<std::uint64_t> store_quota_bytes{0};
};

struct ReplicationContext {
  etcd::Client& client;
  const EtcdKeys keys;
  RpcTimeouts timeouts;
  const Duration retry;  // least time between two tries of a call
  ReplicationStats& stats;
  const ClusterLog log;
  EtcdErrorLog errors{log};

  void execute(const etcd::Txn& txn, etcd::Client::Done done) {
    client.execute(txn, timeouts.deadline(), std::move(done));
  }
};

}  // namespace lockd
