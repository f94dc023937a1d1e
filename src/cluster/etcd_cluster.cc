#include "cluster/etcd_cluster.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/secret.h"
#include "base/version.h"
#include "config/environment.h"
#include "config/values.h"
#include "etcd/etcd_journal.h"
#include "etcd/grpc_etcd.h"
#include "journal/new_directory.h"
#include "journal/posix_storage.h"
#include "replication/chain_copy.h"
#include "server/daemon.h"
#include "server/log.h"
#include "server/settings/option_table.h"

namespace lockd {
namespace {

constexpr int kPriorityMax = 10;

std::string read(std::string_view setting, const std::string& path) {
  if (path.empty()) return {};
  const config::FileText file = config::process_environment().read_file(path);
  // An empty one, as it is for a moment when somebody writes it anew, would mean to do without.
  if (file.error.empty() && !file.text.empty()) return file.text;
  throw std::runtime_error("--" + std::string(setting) + " is " + config::in_quotes(path) +
                           ": it " +
                           (file.error.empty() ? "is empty" : "cannot be read: " + file.error));
}

GrpcEtcdOptions access_to_etcd(const Options& options) {
  return {
      .endpoints = options.etcd,
      .ca = read("etcd-ca", options.etcd_ca),
      .certificate = read("etcd-cert", options.etcd_cert),
      .key = read("etcd-key", options.etcd_key),
      .user = options.etcd_user,
      .password =
          std::string(config::trimmed(read("etcd-password-file", options.etcd_password_file))),
  };
}

// What the servers of a cluster should share, because the next leader goes on where the last one
// was: the leader's are in force. --etcd-detect is one more, which the journal adds.
std::string policy(const Options& options) {
  return "max-locks=" + std::to_string(options.max_locks) +
         " max-waiters=" + std::to_string(options.max_waiters) +
         " max-holds=" + std::to_string(options.max_holds) +
         " max-holds-per-client=" + std::to_string(options.max_holds_per_client) +
         " max-set-wait=" + config::print_seconds(options.max_set_wait) +
         " max-lease-ttl=" + config::print_seconds(options.max_lease_ttl) +
         " default-lease-ttl=" + config::print_seconds(options.default_lease_ttl) +
         " auto-release-on-disconnect=" + (options.auto_release_on_disconnect ? "true" : "false");
}

LogLevel level_of(Severity severity) {
  switch (severity) {
    case Severity::info: return LogLevel::info;
    case Severity::warning: return LogLevel::warn;
    case Severity::error: return LogLevel::error;
  }
  return LogLevel::error;
}

void log_line(Severity severity, std::string_view line) { log_event(level_of(severity), line); }
void log_warning(std::string_view line) { log_event(LogLevel::warn, line); }

// The counters continue when a journal is over and the next one is made.
std::shared_ptr<ReplicationStats> process_stats() {
  static const auto stats = std::make_shared<ReplicationStats>();
  return stats;
}

// Until it is done; throws with its error.
template <typename Copy>
void finish(GrpcEtcd& etcd, Copy& copy) {
  while (!copy.is_done() && copy.error().empty()) {
    etcd.run(std::min<Duration>(copy.turn(), std::chrono::seconds(1)));
  }
  if (!copy.error().empty()) throw std::runtime_error(copy.error());
}

std::string text_of(const StateSummary& summary) {
  return std::to_string(summary.holds) + " holds, " + std::to_string(summary.semaphore_holds) +
         " of them of semaphores, fences up to " + std::to_string(summary.largest_fence);
}

std::string export_to(const Options& options, const std::string& directory) {
  check_new_directory(directory);
  const SystemClock clock;
  GrpcEtcd etcd(access_to_etcd(options));
  ChainExport chain(
      etcd, clock,
      {.cluster = options.etcd_cluster, .fence_floor = options.fence_floor, .log = log_line});
  finish(etcd, chain);
  NewDirectory made(directory);
  StateSummary summary;
  {
    PosixStorage storage(made.path(), PosixStorage::Access::write);
    summary = chain.write(storage);
  }
  made.publish();
  return "exported " + text_of(summary) + ", of cluster " + options.etcd_cluster + " at revision " +
         std::to_string(chain.revision()) + " to " + directory;
}

std::string import_from(const Options& options, const std::string& directory) {
  const SystemClock clock;
  PosixStorage storage(directory, PosixStorage::Access::read);
  GrpcEtcd etcd(access_to_etcd(options));
  ChainImport chain(etcd, clock, storage,
                    {.cluster = options.etcd_cluster,
                     .name = std::to_string(TokenSource().next()),
                     .fence_floor = options.fence_floor,
                     .log = log_line});
  finish(etcd, chain);
  return "imported " + text_of(chain.summary()) + ", from " + directory + " as cluster " +
         options.etcd_cluster;
}

template <typename Act>
int copy(Act act, const Options& options, const std::string& directory) {
  take_grpc_log(log_warning);
  try {
    std::puts(act(options, directory).c_str());
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}

}  // namespace

int export_chain(const Options& options, const std::string& directory) {
  return copy(export_to, options, directory);
}

int import_chain(const Options& options, const std::string& directory) {
  return copy(import_from, options, directory);
}

std::unique_ptr<ClusterJournal> join_etcd_cluster(const Options& options) {
  EtcdJournalOptions journal;
  journal.etcd = access_to_etcd(options);
  journal.read_again = [options] { return access_to_etcd(options); };
  journal.replication.cluster = options.etcd_cluster;
  journal.replication.self.node = options.node_id;
  journal.replication.self.address = config::print_address(*options.advertise_addr);
  journal.replication.self.policy = policy(options);
  journal.replication.program = kVersion;
  if (options.http_addr.has_value() && options.http_addr->port != 0) {
    journal.replication.self.http =
        config::print_address({options.advertise_addr->host, options.http_addr->port});
  }
  journal.replication.detect = options.etcd_detect;
  journal.replication.ranks_below = kPriorityMax - options.etcd_priority;
  journal.replication.stats = process_stats();
  take_grpc_log(log_warning);
  journal.replication.log = log_line;
  return std::make_unique<EtcdJournal>(std::move(journal));
}

}  // namespace lockd
