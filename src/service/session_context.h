// What the sessions of one host share: the server's services, and the host's batch.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"
#include "lockd/batch.h"
#include "lockd/engine.h"
#include "pubsub/signal_hub.h"
#include "replication/cluster_journal.h"
#include "server/access/access.h"
#include "server/buffer_budget.h"
#include "server/client_registry.h"
#include "server/reports/report_queue.h"
#include "server/server_history.h"
#include "server/session/event_feed.h"
#include "server/settings/options.h"
#include "server/worker_stats.h"
#include "service/leader_gate.h"
#include "service/reply.h"

namespace lockd {

// A wait in progress, or the last one. It owns its texts, because it can outlive its session.
struct PendingWait {
  // The items of a request for several keys.
  struct Several {
    std::vector<std::string> keys{};
    std::vector<KeyItem> items{};  // refer to `keys`
  };

  WaitId id{};
  Kind kind = Kind::lock;
  std::string key{};     // the first, if there are several
  std::string holder{};  // empty: the holder is the secret of the grant
  std::shared_ptr<const Several> several{};

  // The texts of `keys` are copied.
  static PendingWait of(const WaitId& id, const KeyItems& keys, std::string_view holder);

  bool empty() const { return key.empty(); }
  KeyItems keys() const;
  // The hold that `grant` began.
  HoldId hold_of(const Grant& grant) const;
};

class SessionHost;

// What a session's executor asks of the host of its session.
class SessionServices {
 public:
  // Receives the ends of waits, by session id.
  virtual Listener& wait_listener() = 0;
  // The report arrives as an event of the session, piece by piece as the peer takes it.
  virtual void request_report(SessionId id, ReportRequest request) = 0;
  // False: as many sessions watch as may.
  virtual bool watch_events(SessionId id, std::string_view prefix, PermitPtr restricted_to) = 0;
  // Returns how many subscribers the signal reached; or nothing, if it has to wait. Then the number
  // arrives as an event of the session.
  virtual std::optional<std::size_t> publish(SessionId publisher, std::string_view channel,
                                             std::string_view payload) = 0;
  // Ends the session of `client`, on whichever host it is. `asker` receives an event when that is
  // done. False: no such client is connected.
  virtual bool disconnect(SessionId asker, SessionId client) = 0;
  // The session ends while a grant may be on its way: if it is, the host takes it back.
  virtual void orphan_wait(SessionId id, PendingWait wait) = 0;

 protected:
  ~SessionServices() = default;
};

// What a host and its sessions are given from outside. All of it outlives them.
struct HostSetup {
  const Options& options;
  Engine& engine;
  SignalHub& hub;
  EventFeed& feed;
  TokenSource& secrets;
  const Access& access;
  ClientRegistry& clients;
  WorkerStats& stats;
  std::function<std::int64_t()> unix_ms;
  ReportQueue& reports;
  // Any thread may call it. Causes the host's turn to end soon: something was posted to its inbox.
  std::function<void()> wake;
  bool keeps_holds = false;                        // holds survive a restart of the server
  ClusterJournal* cluster = nullptr;               // null: a single server
  const BufferBudget* buffers = nullptr;           // of all connections; null: unlimited
  ServerHistory* history = nullptr;                // null: no history of the server
  std::atomic<SessionId>* last_session = nullptr;  // of all hosts; null: there are no links
  LeaderGate& gate = standalone_gate();
};

struct SessionContext : HostSetup {
  Batch& batch;  // of the present turn
  SessionServices& services;
  SessionHost& host;     // for the sessions of links between servers
  std::uint8_t mailbox;  // of signals for these sessions
  std::string date{};    // as HTTP writes it; updated every tick
  bool draining = false;

  // A server of a cluster that stops hands over to another at once. A single server continues to
  // serve clients that hold something.
  bool hands_over() const { return draining && cluster != nullptr; }
  LeaderAddress leader() const { return {gate.leader_address(), gate.leader_http_address()}; }
};

// Why a server cannot be expected to serve, as /readyz, the overview and the metrics show it; empty
// if it can.
inline std::string_view why_not_ready(bool draining, const Engine& engine,
                                      const ClusterJournal* cluster) {
  if (draining) return "draining";
  if (engine.journal_state() == Journal::State::failed) return "storage";
  if (cluster != nullptr) return cluster->status().not_ready;
  return engine.storage_wait() > kStorageWaitMax ? "storage_hangs" : "";
}

}  // namespace lockd
