#include "server/server_context.h"

#include <stdexcept>
#include <string_view>
#include <utility>

#include "server/log.h"
#include "server/session/server_session.h"

namespace lockd {
namespace {

std::unique_ptr<FileJournal> open_journal(const Options& options) {
  if (options.wal.empty()) return nullptr;
  return FileJournal::open({
      .directory = options.wal,
      .sync_interval = options.wal_sync,
      .log = [](std::string_view line) { log_event(LogLevel::warn, line); },
  });
}

std::unique_ptr<ClusterJournal> join_cluster(const Options& options, OpenCluster open_cluster) {
  if (options.etcd.empty()) return nullptr;
  if (open_cluster == nullptr) throw std::runtime_error("this program knows nothing of etcd");
  return open_cluster(options);
}

Clock* clock_of(const ServerContext& shared) {
  if (shared.file_journal != nullptr) return &shared.file_journal->clock();
  return shared.cluster == nullptr ? nullptr : &shared.cluster->clock();
}

}  // namespace

ServerContext::ServerContext(const Options& given, std::function<void()> on_durable,
                             OpenCluster open_cluster)
    : options(given),
      file_journal(open_journal(options)),
      cluster(join_cluster(options, open_cluster)),
      journal(cluster != nullptr ? static_cast<Journal*>(cluster.get()) : file_journal.get()),
      feed(options.max_watchers),
      engine({.keys_max = options.max_locks,
              .waiters_max = options.max_waiters,
              .holds_max = options.max_holds,
              .holds_per_client_max = options.max_holds_per_client,
              .ttl_max = options.max_lease_ttl,
              .idle_max = options.gc_max_idle,
              .gc_interval = options.gc_interval,
              .sweep_interval = options.lease_sweep_interval,
              .clock = clock_of(*this),
              .journal = journal,
              .observer = &feed,
              .on_durable = std::move(on_durable)}),
      hub(options.max_subscriptions),
      admission({.connections = options.max_connections,
                 .per_address = options.max_connections_per_ip,
                 .unproven = options.max_unauthenticated}),
      tls(options),
      access(options),
      buffers(options.max_buffer_memory),
      reports([this](const ReportRequest& request) { return make_report(*this, request); }) {}

std::string_view ServerContext::why_not_ready() const {
  return lockd::why_not_ready(draining, engine);
}

std::string_view ServerContext::journal_state() const {
  if (journal == nullptr) return "none";
  switch (journal->state()) {
    case Journal::State::accepting: return "accepting";
    case Journal::State::full:
    case Journal::State::scarce:
    case Journal::State::exhausted: return "full";
    case Journal::State::following: return "following";
    case Journal::State::failed: return "failed";
  }
  return "";
}

void ServerContext::look_after_disk() {
  const bool hangs = engine.storage_wait() > kStorageWaitMax;
  if (hangs == disk_hangs.load(std::memory_order_relaxed)) return;
  if (disk_hangs.exchange(hangs) == hangs || !hangs) return;
  log_event(LogLevel::warn,
            "the disk hangs: what has to be durable is not answered until it goes on",
            {{"journal", options.wal}});
}

WorkerStats& ServerContext::add_worker_stats() {
  return *worker_stats.emplace_back(std::make_unique<WorkerStats>());
}

}  // namespace lockd
