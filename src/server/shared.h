// What all workers of a server share.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>

#include "lockd/engine.h"
#include "server/admission.h"
#include "server/options.h"
#include "server/tls_identity.h"
#include "signals/signal_hub.h"

namespace lockd {

struct Shared {
  explicit Shared(const Options& options)
      : options(options),
        engine({.keys_max = options.max_locks,
                .waiters_max = options.max_waiters,
                .idle_max = options.gc_max_idle,
                .gc_interval = options.gc_interval,
                .sweep_interval = options.lease_sweep_interval}),
        hub(options.max_subscriptions),
        admission(options.max_connections, options.max_connections_per_ip),
        tls(options) {}

  const Options options;
  Engine engine;
  SignalHub hub;
  Admission admission;
  TlsIdentity tls;
  std::atomic<SessionId> last_session{0};
  // Where what walks through every key is done, away from the loops.
  boost::asio::thread_pool side_work{1};
};

}  // namespace lockd
