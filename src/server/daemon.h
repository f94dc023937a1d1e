// A server as a service: started, reloaded and stopped by signals, and watched by systemd.
#pragma once

#include <string>

#include "config/environment.h"
#include "server/etcd_cluster.h"
#include "server/settings/options.h"

namespace lockd {

// Serves until SIGTERM or SIGINT, then drains; a second one cuts what is left. SIGHUP reads the
// certificate and its key again. In a cluster it hands over before it drains; and when it is
// deposed it begins anew, as a server that knows nothing, in the same process. Returns the status
// to exit with; why it is not zero is logged, or said on stderr when nothing was served.
int serve(const Options& options, const config::Environment& environment,
          OpenCluster open_cluster = nullptr);

// Says on stderr why there is nothing to serve. Returns the status to exit with.
int complain(const std::string& error);

}  // namespace lockd
