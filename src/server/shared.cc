#include "server/shared.h"

#include <string_view>
#include <utility>

#include "server/log.h"
#include "server/readiness.h"

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

}  // namespace

Shared::Shared(const Options& given, std::function<void()> on_durable)
    : options(given),
      journal(open_journal(options)),
      engine({.keys_max = options.max_locks,
              .waiters_max = options.max_waiters,
              .idle_max = options.gc_max_idle,
              .gc_interval = options.gc_interval,
              .sweep_interval = options.lease_sweep_interval,
              .clock = journal == nullptr ? nullptr : &journal->clock(),
              .journal = journal.get(),
              .observer = &feed,
              .on_durable = std::move(on_durable)}),
      hub(options.max_subscriptions),
      admission(options.max_connections, options.max_connections_per_ip),
      tls(options) {}

std::string_view Shared::why_not_ready() const {
  return lockd::why_not_ready(draining, engine.journal_state());
}

std::string_view Shared::journal_state() const {
  if (journal == nullptr) return "none";
  switch (journal->state()) {
    case Journal::State::accepting: return "accepting";
    case Journal::State::full: return "full";
    case Journal::State::following: return "following";
    case Journal::State::failed: return "failed";
  }
  return "";
}

WorkerFigures& Shared::add_worker_figures() {
  return *worker_figures.emplace_back(std::make_unique<WorkerFigures>());
}

}  // namespace lockd
