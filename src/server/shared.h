// What all workers of a server share.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>

#include "lockd/engine.h"
#include "lockd/file_journal.h"
#include "server/admission.h"
#include "server/options.h"
#include "server/tls_identity.h"
#include "signals/signal_hub.h"

namespace lockd {

struct Shared {
  // Opens the journal, if there is to be one, and recovers from it: throws std::runtime_error with
  // a line for people when that cannot be. `on_durable` is the engine's.
  Shared(const Options& options, std::function<void()> on_durable);

  const Options options;
  const std::unique_ptr<FileJournal> journal;  // null: nothing is kept
  Engine engine;
  SignalHub hub;
  Admission admission;
  TlsIdentity tls;
  std::atomic<SessionId> last_session{0};
  // Where what walks through every key is done, away from the loops.
  boost::asio::thread_pool side_work{1};
};

}  // namespace lockd
