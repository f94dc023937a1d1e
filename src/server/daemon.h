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
          const ClusterSupport& support = {});

// Says on stderr why there is nothing to serve. Returns the status to exit with.
int complain(const std::string& error);

}  // namespace lockd
