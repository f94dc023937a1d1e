// What a node of a cluster tells of itself: lines for people, and counters.
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

namespace lockd {

enum class Severity {
  info,
  warning,  // it goes on all the same, or begins anew
  error,    // this server cannot take part, or somebody must act
};
using ClusterLog = std::function<void(Severity, std::string_view)>;

// What is wrong with etcd, told to people: each thing once, until etcd answers again.
class EtcdErrorLog {
 public:
  explicit EtcdErrorLog(ClusterLog log) : log_(std::move(log)) {}

  // Of a call without which it cannot go on.
  void take(const etcd::Answer& answer) {
    if (answer.status == etcd::Answer::Status::done) {
      if (!told_.empty()) log_(Severity::info, "etcd: answers again");
      told_.clear();
    } else if (told_.size() < kToldMax && told_.insert(answer.message).second) {
      log_(Severity::warning, "etcd: " + answer.message);
    }
  }

  // Of something that it refuses to take, while it may take others.
  void tell_of_refusal(std::string_view what, const etcd::Answer& answer) {
    log_(Severity::error, "etcd: refuses " + std::string(what) + ": " + answer.message +
                              "; nobody is answered until it is taken, or this server gives up the "
                              "lead. If it is too large, raise --max-request-bytes of etcd");
  }

 private:
  static constexpr std::size_t kToldMax = 8;

  const ClusterLog log_;
  std::set<std::string> told_;
};

// What a node of a cluster has done, counted. Written by the journal's thread, read by any.
struct ReplicationStats {
  Counter lives;       // of its journal: the first, and each time that it began anew
  Counter unreadable;  // of these, ended by something in the chain that it cannot read
  Counter batches_followed;
  Counter batches_repeated;  // that came twice from the watch
  Counter watches;           // opened
  Counter campaigns;
  Counter terms;    // begun: the campaign was won, and the chain goes on from here
  Counter appends;  // acknowledged by etcd
  Counter append_bytes;
  SharedHistogram append_time;  // from the first sending to the answer
  Counter resends;              // of batches whose fate was unknown
  Counter resolved;             // of those, found to have happened before
  Counter lapses;               // answers that came too late to be certain of leading
  Counter heartbeats;
  Counter snapshots;  // of everything, so that older batches could go
  Counter compactions;
  Counter compactions_refused;  // and done by nobody else since the one before, at half the quota

  // How often in a row, until it had caught up.
  std::atomic<std::uint32_t> unreadable_in_a_row{0};

  // As of the last answer: what the store takes, of that what it needs, and what it may take; 0 for
  // what etcd does not say.
  std::atomic<std::uint64_t> store_bytes{0};
  std::atomic<std::uint64_t> store_bytes_needed{0};
  std::atomic<std::uint64_t> store_quota_bytes{0};
};

}  // namespace lockd
