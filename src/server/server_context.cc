#include "server/server_context.h"

#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "replication/shared_settings.h"
#include "server/log.h"
#include "server/reports/report.h"
#include "server/session/server_session.h"

namespace lockd {
namespace {

std::unique_ptr<FileJournal> open_journal(const Options& options) {
  if (options.wal.empty()) return nullptr;
  if (std::error_code none; std::filesystem::is_regular_file(options.wal, none)) {
    throw std::runtime_error("--wal takes a directory, which is made if it is not there: '" +
                             options.wal + "' is a file");
  }
  return FileJournal::open({
      .directory = options.wal,
      .sync_interval = options.wal_sync,
      .log = [](std::string_view line) { log_event(LogLevel::warn, line); },
  });
}

std::unique_ptr<ClusterJournal> join_cluster(const Options& options,
                                             const ClusterSupport& support) {
  if (options.etcd.empty()) return nullptr;
  if (support.open == nullptr) throw std::runtime_error("this program knows nothing of etcd");
  if (options.cluster_secret.empty()) {
    log_event(LogLevel::info,
              "nothing is forwarded without --cluster-secret-file: while another server leads, "
              "clients are told where it is");
  }
  return support.open(options);
}

// Of --history, for what is about no key: what is rare has a quarter of it in all.
constexpr std::uint64_t kPartsOfHistory = 16;
constexpr Duration kAgeInterval = std::chrono::seconds(1);

// None while nobody would read it.
std::function<void(const Sweep&)> sweep_log() {
  if (!logs(LogLevel::trace)) return {};
  return [](const Sweep& sweep) {
    if (sweep.shards > 0) {
      log_event(LogLevel::trace, "sweep",
                {{"shards", sweep.shards},
                 {"waits_ended", sweep.waits_ended},
                 {"took_us", whole_us(sweep.took)}});
    }
    if (sweep.keys_forgotten > 0) {
      log_event(LogLevel::trace, "idle keys forgotten", {{"keys", sweep.keys_forgotten}});
    }
  };
}

Clock* clock_of(const ServerContext& shared) {
  if (shared.file_journal != nullptr) return &shared.file_journal->clock();
  return shared.cluster == nullptr ? nullptr : &shared.cluster->clock();
}

}  // namespace

ServerContext::ServerContext(const Options& given, std::function<void()> on_durable,
                             const ClusterSupport& support)
    : options(given),
      file_journal(open_journal(options)),
      cluster(join_cluster(options, support)),
      journal(cluster != nullptr ? static_cast<Journal*>(cluster.get()) : file_journal.get()),
      make_gate(cluster == nullptr ? nullptr : support.make_gates()),
      feed(options.max_watchers, &clients),
      engine({.keys_max = options.max_locks,
              .waiters_max = options.max_waiters,
              .refuses_tries_at_full_queue = options.dflockd_letter,
              .keeps_idle_limits = options.dflockd_letter,
              .holds_max = options.max_holds,
              .holds_per_client_max = options.max_holds_per_client,
              .ttl_max = options.max_lease_ttl,
              .fence_floor = options.fence_floor,
              .set_wait_max = options.max_set_wait,
              .idle_max = options.gc_max_idle,
              .gc_interval = options.gc_interval,
              .sweep_interval = options.lease_sweep_interval,
              .age_interval = kAgeInterval,
              .slow_wait = options.slow_wait,
              .slow_hold = options.slow_hold,
              .history_size = options.history - options.history / kPartsOfHistory,
              .clock = clock_of(*this),
              .journal = journal,
              .observer = &feed,
              .on_durable = std::move(on_durable),
              .on_sweep = sweep_log()}),
      history(options.history / kPartsOfHistory, [this] { return engine.now(); }),
      hub(options.max_subscriptions),
      admission({.connections = options.max_connections,
                 .per_address = options.max_connections_per_ip,
                 .unproven = options.max_unauthenticated}),
      tls(options),
      access(options),
      buffers(options.max_buffer_memory),
      reports([this](const ReportRequest& request) { return make_report(*this, request); }) {
  const Stats recovered = engine.stats();
  const std::uint64_t holds = recovered.locks_held + recovered.semaphore_holders;
  history.add({.type = ServerEvent::Type::started, .keys = recovered.keys, .holds = holds});
  if (file_journal == nullptr) return;
  log_event(LogLevel::info, "recovered",
            {{"journal", options.wal},
             {"keys", recovered.keys},
             {"holds", holds},
             {"took_ms", whole_ms(std::chrono::steady_clock::now() - started)}});
}

std::string_view ServerContext::why_not_ready() const {
  return lockd::why_not_ready(draining, engine, cluster.get());
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

std::uint64_t ServerContext::keys_max() const {
  if (cluster == nullptr) return options.max_locks;
  const auto settings = shared_settings_in(cluster->status().settings);
  if (!settings || !settings->contains("max-locks")) return options.max_locks;
  return parse_whole(settings->at("max-locks"), 0, UINT64_MAX).value_or(options.max_locks);
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
