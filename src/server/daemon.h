// A server as a service: started, reloaded and stopped by signals, and watched by systemd.
#pragma once

#include <memory>
#include <string>

#include "config/environment.h"
#include "server/server_context.h"
#include "server/settings/options.h"

namespace lockd {

// Serves until SIGTERM or SIGINT, then drains; a second one cuts what is left. SIGHUP reads the
// certificate, its key and the auth tokens again. In a cluster it hands over before it drains; and
// when it is deposed it begins anew, as a server that knows nothing, in the same process. Returns
// the status to exit with; why it is not zero is logged, or said on stderr when nothing was served.
int serve(const Options& options, const config::Environment& environment,
          OpenCluster open_cluster = nullptr);

// For lockd-ha alone, which is where a server meets gRPC. Does not wait for etcd: it follows when
// that answers. Throws std::runtime_error when a file that the options name cannot be read.
std::unique_ptr<ClusterJournal> join_etcd_cluster(const Options& options);

// For lockd-ha alone, instead of serving. Writes what the cluster holds into a new directory, as
// a journal; or begins a cluster, where there is none, with what is in one. Prints a line of it.
// Returns the status to exit with; why it is not zero is said on stderr.
int export_chain(const Options& options, const std::string& directory);
int import_chain(const Options& options, const std::string& directory);
using CopyChain = int (*)(const Options& options, const std::string& directory);

// Says on stderr why there is nothing to serve. Returns the status to exit with.
int complain(const std::string& error);

}  // namespace lockd
