#include "server/shared.h"

#include <string_view>
#include <utility>

#include "server/log.h"

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
              .on_durable = std::move(on_durable)}),
      hub(options.max_subscriptions),
      admission(options.max_connections, options.max_connections_per_ip),
      tls(options) {}

}  // namespace lockd
