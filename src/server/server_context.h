// What all workers of a server share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "lockd/engine.h"
#include "lockd/file_journal.h"
#include "pubsub/signal_hub.h"
#include "replication/cluster_journal.h"
#include "server/access/access.h"
#include "server/admission.h"
#include "server/buffer_budget.h"
#include "server/client_registry.h"
#include "server/failed_attempts.h"
#include "server/reports/report_threads.h"
#include "server/server_history.h"
#include "server/session/event_feed.h"
#include "server/settings/options.h"
#include "server/tls_identity.h"
#include "server/worker_stats.h"
#include "service/leader_gate.h"

namespace lockd {

class Loop;
struct ServerContext;
// Makes the gate of one loop, before that runs.
using MakeGate = std::function<std::unique_ptr<LeaderGate>(Loop& loop, ServerContext& server)>;

// What a server needs to be one of several; null in a program that has no clusters.
struct ClusterSupport {
  // Joins the cluster that the options name. Throws std::runtime_error with a line for people.
  std::unique_ptr<ClusterJournal> (*open)(const Options& options) = nullptr;
  // What makes the gates of one server.
  MakeGate (*make_gates)() = nullptr;
};

// What the metrics and reports show of forwarding.
struct ForwardingStats {
  std::atomic<std::uint64_t> links{0};   // to the leader, that are up
  std::atomic<std::uint64_t> opened{0};  // channels: clients and HTTP requests that were passed on
};

struct ServerContext {
  // Opens the journal, if there is to be one, and recovers from it: throws std::runtime_error with
  // a line for people when that cannot be. `on_durable` is the engine's.
  ServerContext(const Options& options, std::function<void()> on_durable,
                const ClusterSupport& support);

  // Why no grant can be expected now; empty when one can.
  std::string_view why_not_ready() const;
  // "none", "accepting", "full", "following" or "failed".
  std::string_view journal_state() const;
  // How many keys there may be: what --max-locks is here or, where it follows, at the leader.
  std::uint64_t keys_max() const;
  // Now and then, by any thread that does not wait for the disk: says so when it hangs. When it
  // answers again, the journal says so itself.
  void look_after_disk();
  // How much happened that neither history has, for being too much at once.
  std::uint64_t history_dropped() const {
    return engine.stats().history_dropped + history.dropped();
  }
  // Before any worker has started.
  WorkerStats& add_worker_stats();

  const Options options;
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  const std::chrono::system_clock::time_point started_at = std::chrono::system_clock::now();
  // One of them, or none: then nothing is kept.
  const std::unique_ptr<FileJournal> file_journal;
  const std::unique_ptr<ClusterJournal> cluster;
  Journal* const journal;    // whichever it is, or null
  const MakeGate make_gate;  // null: the server is on its own
  ForwardingStats forwarding;
  ClientRegistry clients;
  EventFeed feed;
  Engine engine;
  ServerHistory history;
  SignalHub hub;
  Admission admission;
  TlsIdentity tls;
  Access access;
  FailedAttempts failed_attempts;
  BufferBudget buffers;
  // Where clients come in; 0: not there. Fixed before any worker starts.
  std::uint16_t line_port = 0;
  std::uint16_t http_port = 0;
  std::atomic<SessionId> last_session{0};
  std::atomic<bool> draining{false};
  std::atomic<bool> disk_hangs{false};                     // and the log has it
  std::vector<std::unique_ptr<WorkerStats>> worker_stats;  // fixed once they have started
  ReportThreads reports;                                   // last: they use all of the above
};

}  // namespace lockd
