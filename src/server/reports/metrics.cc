#include "base/version.h"
#include "server/reports/report.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "server/log.h"
#include "server/reports/process_stats.h"
#include "server/server_context.h"
#include "server/settings/option_table.h"

namespace lockd {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// The families of one answer, in the order in which they are added.
class Families {
 public:
  using Labels = std::vector<ClientMetric::Label>;

  // A family; metrics are added to the last one that was begun.
  void begin(std::string name, std::string help, MetricType type) {
    families_.push_back({std::move(name), std::move(help), type, {}});
  }
  void add(double value, Labels labels = {}) {
    MetricFamily& family = families_.back();
    ClientMetric metric;
    metric.label = std::move(labels);
    (family.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    family.metric.push_back(std::move(metric));
  }

  void counter(std::string name, std::string help, std::uint64_t value) {
    begin(std::move(name), std::move(help), MetricType::Counter);
    add(static_cast<double>(value));
  }
  void gauge(std::string name, std::string help, double value) {
    begin(std::move(name), std::move(help), MetricType::Gauge);
    add(value);
  }
  void gauge(std::string name, std::string help, std::uint64_t value) {
    gauge(std::move(name), std::move(help), static_cast<double>(value));
  }
  void histogram(std::string name, std::string help, const Histogram& histogram) {
    begin(std::move(name), std::move(help), MetricType::Histogram);
    ClientMetric metric;
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < Histogram::kBucketCount; ++i) {
      count += histogram.buckets()[i];
      const double bound = i < Histogram::kBoundCount
                               ? std::chrono::duration<double>(Histogram::bound(i)).count()
                               : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({count, bound});
    }
    metric.histogram.sample_count = count;
    metric.histogram.sample_sum = histogram.sum_seconds();
    families_.back().metric.push_back(std::move(metric));
  }

  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  std::vector<MetricFamily> families_;
};

void add_state(Families& families, ServerContext& shared, const Stats& stats) {
  families.begin("lockd_build_info", "Which version runs.", MetricType::Gauge);
  families.add(1, {{"version", std::string(kVersion)}});
  families.gauge(
      "lockd_uptime_seconds", "How long the server has run.",
      std::chrono::duration<double>(std::chrono::steady_clock::now() - shared.started).count());
  families.gauge("lockd_ready",
                 "1 when the server can grant, 0 when it stops or its journal has failed or hangs.",
                 std::uint64_t{shared.why_not_ready().empty()});
  families.gauge("lockd_connections", "Clients connected, over both ports.",
                 shared.admission.connections());
  families.gauge("lockd_connections_unauthenticated",
                 "Those of them in a TLS handshake, or without the auth token that is asked for.",
                 shared.admission.unproven());
  families.gauge("lockd_keys", "Keys known, idle ones included.", stats.keys);
  families.gauge("lockd_keys_idle", "Keys that nobody holds or waits for.", stats.idle_keys);
  families.gauge("lockd_keys_max", "Keys there may be: --max-locks.", shared.keys_max());
  families.gauge("lockd_locks_held", "Locks held.", stats.locks_held);
  families.gauge("lockd_shared_holds", "Holds of locks by those who share them.",
                 stats.shared_holds);
  families.gauge("lockd_lock_waiters", "Requests queued for a lock.", stats.lock_waiters);
  families.gauge("lockd_semaphore_holders", "Holders of semaphores.", stats.semaphore_holders);
  families.gauge("lockd_semaphore_waiters", "Requests queued for a permit.",
                 stats.semaphore_waiters);
}

void add_ages(Families& families, ServerContext& shared) {
  const Ages ages = shared.engine.ages();
  const auto seconds_of = [](Duration age) { return std::chrono::duration<double>(age).count(); };
  families.gauge("lockd_oldest_wait_seconds",
                 "How long the first in any queue has waited by now; 0 when nobody waits.",
                 seconds_of(ages.oldest_wait.age));
  families.gauge("lockd_oldest_hold_seconds",
                 "How long ago the oldest hold was granted; 0 when nobody holds anything.",
                 seconds_of(ages.oldest_hold.age));
  families.gauge("lockd_longest_queue", "How many wait in the longest queue of one key.",
                 std::uint64_t{ages.longest_queue.waiters});
  families.counter("lockd_history_dropped_total",
                   "Refusals and failed authentication that the history lacks: too many at once.",
                   shared.history_dropped());
}

void add_engine(Families& families, const Stats& stats) {
  families.counter("lockd_grants_total", "Grants of locks and permits.", stats.grants);
  families.counter("lockd_contended_total", "Grants that had waited in a queue.", stats.contended);
  families.counter("lockd_renewals_total", "Leases renewed.", stats.renewals);
  families.begin("lockd_ended_total", "Holds ended, by how.", MetricType::Counter);
  families.add(static_cast<double>(stats.releases), {{"cause", "released"}});
  families.add(static_cast<double>(stats.expiries), {{"cause", "expired"}});
  families.add(static_cast<double>(stats.disconnects), {{"cause", "disconnected"}});
  families.add(static_cast<double>(stats.revocations), {{"cause", "revoked"}});
  families.counter("lockd_queued_total", "Requests that joined a queue.", stats.queued);
  families.counter("lockd_timeouts_total", "Waits that ran out.", stats.timeouts);
  families.counter("lockd_cancels_total", "Waits that were cancelled.", stats.cancels);
  families.begin("lockd_refusals_total", "Requests refused, by why.", MetricType::Counter);
  const Stats::Refusals& refusals = stats.refusals;
  families.add(static_cast<double>(refusals.held), {{"reason", "held"}});
  families.add(static_cast<double>(refusals.max_keys), {{"reason", "max_locks"}});
  families.add(static_cast<double>(refusals.max_waiters), {{"reason", "max_waiters"}});
  families.add(static_cast<double>(refusals.max_holds), {{"reason", "max_holds"}});
  families.add(static_cast<double>(refusals.limit_mismatch), {{"reason", "limit_mismatch"}});
  families.histogram("lockd_wait_seconds", "Time in the queue, of grants that had to wait.",
                     stats.wait_time);
  families.histogram("lockd_hold_seconds", "Time from a grant to its end.", stats.hold_time);
  families.histogram("lockd_expiry_lag_seconds",
                     "Time from the end of a lease to when it was acted on.", stats.expiry_lag);
}

// The sum of one counter over all workers.
std::uint64_t sum(const ServerContext& shared,
                  const std::function<std::uint64_t(const WorkerStats&)>& counter) {
  std::uint64_t total = 0;
  for (const auto& stats : shared.worker_stats) total += counter(*stats);
  return total;
}

void add_http(Families& families, const ServerContext& shared) {
  families.begin("lockd_http_requests_total", "HTTP requests answered, by call and status.",
                 MetricType::Counter);
  for (std::size_t call = 0; call < kHttpCalls; ++call) {
    for (std::size_t i = 0; i <= kCountedStatuses.size(); ++i) {
      const std::uint64_t count =
          sum(shared, [&](const WorkerStats& f) { return f.http_requests[call][i].value(); });
      if (count == 0) continue;
      families.add(
          static_cast<double>(count),
          {{"call", std::string(call_name(static_cast<HttpCall>(call)))},
           {"code", i < kCountedStatuses.size() ? std::to_string(kCountedStatuses[i]) : "other"}});
    }
  }
}

void add_workers(Families& families, const ServerContext& shared) {
  using F = WorkerStats;
  families.counter("lockd_line_requests_total", "Requests of the line protocol.",
                   sum(shared, [](const F& f) { return f.line_requests.value(); }));
  families.begin("lockd_violations_total", "Broken rules of the line protocol, by code.",
                 MetricType::Counter);
  for (std::size_t code = 1; code < kViolationCodes; ++code) {
    const std::uint64_t count = sum(shared, [&](const F& f) { return f.violations[code].value(); });
    if (count > 0) families.add(static_cast<double>(count), {{"code", std::to_string(code)}});
  }
  families.counter("lockd_connections_accepted_total", "Connections accepted.",
                   sum(shared, [](const F& f) { return f.connections_accepted.value(); }));
  families.counter("lockd_connections_refused_total",
                   "Connections closed at once: too many, or no descriptors.",
                   sum(shared, [](const F& f) { return f.connections_refused.value(); }));
  families.counter("lockd_log_dropped_total",
                   "Lines of the log that were dropped: nobody read it fast enough.",
                   log_lines_dropped());
  families.begin("lockd_unauthenticated_closed_total",
                 "Connections closed before they had authenticated, by why.", MetricType::Counter);
  families.add(
      static_cast<double>(sum(shared, [](const F& f) { return f.proof_timeouts.value(); })),
      {{"reason", "deadline"}});
  families.add(static_cast<double>(sum(shared, [](const F& f) { return f.crowded_out.value(); })),
               {{"reason", "crowd"}});
  families.counter("lockd_connections_cut_for_memory_total",
                   "Connections closed for having most in buffers, over --max-buffer-memory.",
                   sum(shared, [](const F& f) { return f.connections_cut_for_memory.value(); }));
  families.gauge("lockd_buffer_memory_bytes",
                 "Memory of all connections for unread input, unsent output and bodies.",
                 shared.buffers.bytes());
  families.begin("lockd_auth_failures_total", "Auth tokens that were missing or wrong, by port.",
                 MetricType::Counter);
  families.add(
      static_cast<double>(sum(shared, [](const F& f) { return f.line_auth_failures.value(); })),
      {{"protocol", "line"}});
  families.add(
      static_cast<double>(sum(shared, [](const F& f) { return f.http_auth_failures.value(); })),
      {{"protocol", "http"}});
  families.counter("lockd_signals_published_total", "Signals published.",
                   sum(shared, [](const F& f) { return f.signals_published.value(); }));
  families.counter("lockd_signals_delivered_total", "Copies of signals handed to listeners.",
                   sum(shared, [](const F& f) { return f.signals_delivered.value(); }));
  Histogram hand_off;
  for (const auto& stats : shared.worker_stats) hand_off += stats->hand_off.read();
  families.histogram("lockd_handoff_seconds",
                     "Time from a grant to a waiter to when its reply may leave.", hand_off);
}

void add_signals(Families& families, const SignalHub& hub) {
  families.gauge("lockd_signal_listeners", "Subscriptions to signals.",
                 std::uint64_t{hub.listeners()});
}

// Of the files in a directory, as far as they can be read.
std::uint64_t bytes_in(const std::string& directory) {
  std::error_code error;
  std::uint64_t bytes = 0;
  for (std::filesystem::directory_iterator it(directory, error), end; it != end && !error;
       it.increment(error)) {
    std::error_code gone;
    const std::uint64_t size = it->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

void add_journal(Families& families, const ServerContext& shared) {
  const FileJournal* const journal = shared.file_journal.get();
  if (journal == nullptr) return;
  // A disk that does not answer is asked nothing.
  if (journal->storage_wait() < kStorageWaitMax) {
    families.gauge("lockd_journal_bytes",
                   "The size of the journal's files, with the space that they have taken ahead.",
                   bytes_in(shared.options.wal));
  }
  const Histogram sync_time = journal->sync_time();
  families.counter("lockd_journal_syncs_total", "Syncs of the journal.", sync_time.count());
  families.histogram("lockd_journal_sync_seconds", "Time that a sync took.", sync_time);
  families.gauge("lockd_journal_disk_wait_seconds",
                 "How long the disk has not answered by now; 0 when nothing is asked of it.",
                 std::chrono::duration<double>(journal->storage_wait()).count());
  families.begin("lockd_journal_state", "1 for the state the journal is in.", MetricType::Gauge);
  const Journal::State state = journal->state();
  families.add(state == Journal::State::accepting, {{"state", "accepting"}});
  families.add(Journal::is_full(state), {{"state", "full"}});
  families.add(state == Journal::State::failed, {{"state", "failed"}});
}

// Of something that was so at `since`, or never.
double seconds_since(std::optional<Time> since, Time now) {
  if (!since.has_value() || now <= *since) return 0;
  return std::chrono::duration<double>(now - *since).count();
}

// What tells whether this server would do as a leader, and whether etcd lets it.
void add_cluster_health(Families& families, const ClusterStatus& status, Time now,
                        const ReplicationStats& stats) {
  families.gauge("lockd_cluster_lag_seconds",
                 "For how long this server has known of something in the chain that it has not.",
                 seconds_since(status.lags_since, now));
  if (status.answered != Time{}) {
    families.gauge("lockd_cluster_etcd_silent_seconds", "Time since etcd answered last.",
                   seconds_since(status.answered, now));
  }
  families.gauge("lockd_cluster_etcd_full", "1 while etcd takes nothing, for lack of space.",
                 std::uint64_t{status.not_written == "etcd_full"});
  families.counter("lockd_cluster_reloads_total",
                   "How often this server dropped what it knew, and read the chain anew.",
                   stats.starts.value() - 1);
  families.counter("lockd_cluster_unreadable_total",
                   "How often that was for something in the chain that it cannot read.",
                   stats.unreadable.value());
}

void add_etcd_store(Families& families, const ReplicationStats& stats) {
  const auto add = [&](const char* name, const char* help, std::uint64_t bytes) {
    if (bytes != 0) families.gauge(name, help, bytes);
  };
  add("lockd_cluster_etcd_bytes", "What etcd's store takes of its disk.", stats.store_bytes);
  add("lockd_cluster_etcd_needed_bytes", "What of it etcd needs; the rest goes to defragment.",
      stats.store_bytes_needed);
  add("lockd_cluster_etcd_quota_bytes",
      "What etcd's store may take. etcd says so from version 3.6 on.", stats.store_quota_bytes);
}

void add_forwarding(Families& families, const ServerContext& shared) {
  if (shared.cluster == nullptr || shared.options.cluster_secret.empty()) return;
  families.gauge("lockd_cluster_link_up",
                 "1 where this server follows and is connected to the leader.",
                 std::uint64_t{shared.forwarding.links != 0});
  families.counter("lockd_cluster_forwarded_total",
                   "Clients and HTTP requests of this server that were passed on to the leader.",
                   shared.forwarding.opened.load());
}

void add_cluster(Families& families, const ClusterJournal* cluster) {
  if (cluster == nullptr) return;
  const ClusterStatus status = cluster->status();
  const ReplicationStats& stats = cluster->stats();
  families.gauge("lockd_cluster_leads", "1 where this server leads, while that is certain.",
                 std::uint64_t{status.certain});
  families.gauge("lockd_cluster_epoch", "The epoch of the leader that is known; 0 for none.",
                 static_cast<std::uint64_t>(status.leader.epoch));
  families.gauge("lockd_cluster_applied", "How far along the chain this server is.",
                 status.applied);
  families.gauge("lockd_cluster_behind",
                 "Changes of the chain that etcd had, when last looked, and this server had not.",
                 status.behind);
  families.gauge("lockd_cluster_nodes", "Servers that were heard of lately.",
                 status.members.size());
  families.counter("lockd_cluster_terms_total", "How often this server began to lead.",
                   stats.terms.value());
  families.counter("lockd_cluster_campaigns_total", "How often this server stood for election.",
                   stats.campaigns.value());
  families.counter("lockd_cluster_appends_total", "Batches that etcd has acknowledged.",
                   stats.appends.value());
  families.counter("lockd_cluster_append_bytes_total",
                   "Bytes in the batches that etcd has acknowledged.", stats.append_bytes.value());
  families.histogram("lockd_cluster_append_seconds", "Time until etcd has acknowledged a batch.",
                     stats.append_time.read());
  families.counter("lockd_cluster_resends_total", "Batches sent again, for want of an answer.",
                   stats.resends.value());
  families.counter("lockd_cluster_resolved_total",
                   "Batches sent again that etcd was found to have already.",
                   stats.resolved.value());
  families.counter("lockd_cluster_lapses_total",
                   "Answers of etcd that came too late to be certain of leading.",
                   stats.lapses.value());
  families.counter("lockd_cluster_batches_followed_total",
                   "Batches of other leaders that this server applied.",
                   stats.batches_followed.value());
  families.counter("lockd_cluster_watches_total", "Watches opened.", stats.watches.value());
  families.counter("lockd_cluster_snapshots_total",
                   "Snapshots of the whole state that this server wrote.", stats.snapshots.value());
  families.counter("lockd_cluster_compactions_total",
                   "Compactions of etcd that this server asked for and got.",
                   stats.compactions.value());
  families.counter("lockd_cluster_compactions_refused_total",
                   "Compactions that etcd refused to this server with half of its store in use, "
                   "and nobody else had done since the one before.",
                   stats.compactions_refused.value());
  add_cluster_health(families, status, cluster->clock().now(), stats);
  add_etcd_store(families, stats);
}

void add_process(Families& families) {
  const ProcessStats process = read_process_stats();
  families.begin("process_cpu_seconds_total", "Processor time that the server has taken.",
                 MetricType::Counter);
  families.add(process.cpu_seconds);
  families.gauge("process_resident_memory_bytes", "Memory that the server has.",
                 process.resident_bytes);
  families.gauge("process_virtual_memory_bytes", "Addresses that it has.", process.virtual_bytes);
  families.gauge("process_open_fds", "Open descriptors.", process.open_files);
  families.gauge("process_max_fds", "How many there may be.", process.open_files_max);
  families.gauge("process_start_time_seconds", "When it started, since 1970.",
                 process.started_unix_seconds);
}

}  // namespace

std::string metrics_text(ServerContext& shared) {
  const Stats stats = shared.engine.stats();
  Families families;
  add_state(families, shared, stats);
  add_ages(families, shared);
  add_engine(families, stats);
  add_workers(families, shared);
  add_http(families, shared);
  add_signals(families, shared.hub);
  add_journal(families, shared);
  add_cluster(families, shared.cluster.get());
  add_forwarding(families, shared);
  add_process(families);
  return families.text();
}

}  // namespace lockd
