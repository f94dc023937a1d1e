// Where a server meets gRPC: the cluster's journal on etcd, and copies of what that holds.
#pragma once

#include <memory>
#include <string>

#include "replication/cluster_journal.h"
#include "server/settings/options.h"

namespace lockd {

// Does not wait for etcd: the server follows when that answers. Throws std::runtime_error when a
// file that the options name cannot be read.
std::unique_ptr<ClusterJournal> join_etcd_cluster(const Options& options);

// See ServerProgram.
int export_chain(const Options& options, const std::string& directory);
int import_chain(const Options& options, const std::string& directory);

}  // namespace lockd
