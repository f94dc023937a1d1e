// How a server joins its cluster. The one place where dflockd-ha meets gRPC.
#pragma once

#include <memory>

#include "replication/cluster_journal.h"
#include "server/settings/options.h"

namespace lockd {

// Joins the cluster that the options name. Throws std::runtime_error with a line for people.
using OpenCluster = std::unique_ptr<ClusterJournal> (*)(const Options& options);

// Does not wait for etcd: it follows when that answers. Throws std::runtime_error when a file that
// the options name cannot be read.
std::unique_ptr<ClusterJournal> join_etcd_cluster(const Options& options);

}  // namespace lockd
