#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "config/environment.h"
#include "config/values.h"
#include "etcd/etcd_journal.h"
#include "etcd/grpc_etcd.h"
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

// Of the process: a journal is over when it is deposed, and what was counted goes on.
ReplicationStats& stats_of_all_lives() {
  static ReplicationStats stats;
  return stats;
}

}  // namespace

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
  journal.replication.stats = &stats_of_all_lives();
  take_grpc_log([](std::string_view line) { log_event(LogLevel::warn, line); });
  journal.replication.log = [](Severity severity, std::string_view line) {
    log_event(level_of(severity), line);
  };
  return std::make_unique<EtcdJournal>(std::move(journal));
}

}  // namespace lockd
