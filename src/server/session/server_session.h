// One client's session, on whatever protocol, without its socket.
//
// Bytes go in, replies are appended to an output. Requests are executed strictly in order, and
// nothing behind one that blocks starts before it has its reply. Used by one thread at a time: that
// of the SessionHost it belongs to. No clock, no I/O: the host says when the peer left, when a wait
// is over, and when the server begins to stop.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/secret.h"
#include "lockd/batch.h"
#include "lockd/engine.h"
#include "lockd/journal.h"
#include "protocol/http/http_request.h"
#include "protocol/line/line_request.h"
#include "pubsub/signal_hub.h"
#include "replication/cluster_journal.h"
#include "server/access/access.h"
#include "server/buffer_budget.h"
#include "server/client_registry.h"
#include "server/reports/report_queue.h"
#include "server/server_history.h"
#include "server/session/event_feed.h"
#include "server/session/leader_gate.h"
#include "server/session/peer.h"
#include "server/session/request_log.h"
#include "server/settings/options.h"
#include "server/worker_stats.h"

namespace lockd {

class NamedKeys;
class SessionHost;

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
  // Any thread. Has the host's turn end soon: something was left for it.
  std::function<void()> wake;
  bool keeps_holds = false;                        // over a restart of the server
  ClusterJournal* cluster = nullptr;               // null: the server is on its own
  const BufferBudget* buffers = nullptr;           // of all connections; null: none is kept
  ServerHistory* history = nullptr;                // null: none is kept
  std::atomic<SessionId>* last_session = nullptr;  // of all hosts; null: nobody comes by a link
  LeaderGate& gate = standalone_gate();
};

// What the sessions of one host share. Outlives them.
struct SessionContext : HostSetup {
  Batch& batch;  // of the present turn
  SessionHost& host;
  std::uint8_t mailbox;  // where signals for these sessions go
  std::string date{};    // as HTTP writes it, renewed now and then
  bool draining = false;

  // While it stops, a server on its own goes on serving those who hold. One of a cluster hands over
  // at once, and another serves them.
  bool hands_over() const { return draining && cluster != nullptr; }
};

class ServerSession {
 public:
  enum class Fate : std::uint8_t {
    open,
    closes,
    refused,  // not let in: what it says is dropped, and it is closed after a pause
  };
  // Why it has to wait, for as long as the transport says: see end_pause().
  enum class Pause : std::uint8_t {
    none,
    not_served,      // whatever it says
    failed_attempt,  // with a wrong auth token, or none: longer, for one who has tried often
  };

  virtual Protocol protocol() const = 0;

  virtual ~ServerSession() = default;
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;

  // Executes the requests that are complete, until one blocks, the session ends, or so much
  // was done for it that the rest is for a later turn: one, while the journal is behind. Returns
  // how many bytes were taken.
  virtual std::size_t take_in(std::string_view unread, std::string& out) = 0;

  // A request blocks: nothing is taken in.
  virtual bool blocked() const = 0;
  // What it does now is for a peer that is there: it waits in the queue, or streams.
  virtual bool needs_peer() const = 0;
  // What its wait is granted is not released when it ends: so nothing may be granted to a peer that
  // has gone.
  virtual bool holds_outlive_it() const { return false; }
  // Whether silence is no reason to close it.
  virtual bool may_be_silent() = 0;
  // The number of the request that has begun and is not whole, which it must be within the read
  // timeout; 0: none, or it waits behind one that blocks.
  virtual std::uint64_t request_under_way() const = 0;
  // Whether its client may be here: it has presented the auth token, where one is asked for.
  virtual bool has_proved() const = 0;

  // The memory that it has for what has come, or is to be said, in bytes.
  virtual std::size_t buffered() const {
    return unpublished_.channel.size() + unpublished_.payload.size();
  }

  // The pause is over: it is answered, or closed.
  virtual void end_pause(std::string& out) = 0;

  // Ends what blocks: the wait, the report that was asked for, with its last piece, or the signal
  // that had to wait.
  virtual void on_wait_done(const WaitResult& result, std::string& out) = 0;
  virtual void report(const ReportPiece& piece, std::string& out) = 0;
  // The signal that it publishes has gone out, to so many.
  virtual void on_published(std::size_t reached, std::string& out) = 0;
  // Something it listens to, or watches. False: it has to be closed, for it cannot take any more.
  virtual bool signalled(const Signal& signal, std::string& out) = 0;
  // A hold of its has ended without its doing. False as above.
  virtual bool on_lost(const LostHold& /*lost*/, std::string& /*out*/) { return true; }
  // `missed`: so many before it, which it could not be told of.
  virtual void on_key_event(const KeyEventJson& /*event*/, std::uint64_t /*missed*/,
                            std::string& /*out*/) {}
  // The peer sends no more.
  virtual void on_end_of_input() {}
  // The peer has taken all of the output but the last `unsent` bytes.
  virtual void on_sent(std::size_t /*unsent*/) {}
  // Now and then while nothing else is sent: a stream shows that it is alive.
  virtual void ping(std::string& /*out*/) {}

  // It is not let in, whatever it says.
  virtual void turn_away(std::string& out) = 0;
  // The peer was silent for too long; `half` of a request is there.
  virtual void time_out(bool half, std::string& out) = 0;
  // The peer left in the middle of a request.
  virtual void cut_short() {}
  // The server begins to stop: what blocks is given up.
  virtual void drain(std::string& out) = 0;
  // While the server stops: whether nothing keeps it here.
  virtual bool may_go() { return false; }
  // The peer is gone. `keep_holds`: its leases alone end what it holds. Does about `budget` steps
  // of it, less those it took, and returns true when nothing is left. Nothing is called after it,
  // but the same again until then.
  virtual bool end(bool keep_holds, int* budget) = 0;

  // It is about to end. `detaches`: the client did not choose to leave, and this server lets go of
  // it, because it stops or has lost its place in the cluster.
  virtual void on_leaving(bool /*detaches*/) {}

  // It serves others, who are sessions of this host, and end with it.
  virtual bool carries_others() const { return false; }
  // What takes its place from now on; null: nothing does.
  std::unique_ptr<ServerSession> take_successor() { return std::move(successor_); }
  // It takes the place of `last`, which most do not need any more.
  virtual void replace(std::unique_ptr<ServerSession> /*last*/) {}
  // It has its place back from the session that LeaderGate::proxy() made. No status: its request
  // was answered. Otherwise `error` is the answer; of lines, none was passed on, as no leader was
  // found.
  virtual void resume(const HttpError& /*error*/, std::string& /*out*/) {}
  // When its client last waited for a leader in vain; zero: never.
  Time found_no_leader() const { return found_no_leader_; }
  void note_no_leader(Time at) { found_no_leader_ = at; }

  // The wait that blocks it, or the last that did. A holder without a name is known by the grant's
  // secret.
  struct Wait {
    WaitId id{};
    Kind kind = Kind::lock;
    std::string key{};
    std::string holder{};
    std::shared_ptr<const NamedKeys> all{};  // of a wait for several keys: `key` is the first
  };
  const Wait& wait() const { return wait_; }
  void set_wait(Wait wait) { wait_ = std::move(wait); }

  // The signal that it publishes, while it has to wait; the host's to write and to take.
  struct Unpublished {
    std::string channel{};
    std::string payload{};
  };
  Unpublished& unpublished() { return unpublished_; }

  Fate fate() const { return fate_; }
  Pause pause() const { return pause_; }
  // The rule that was broken last.
  Violation violation() const { return violation_; }
  SessionId id() const { return session_.id; }
  const Peer& peer() const { return peer_; }
  // Who it says it is; null: it has not said.
  const ClientRef& client() const { return session_.client; }
  SignalHub::Subscriber subscriber() const { return {context_.mailbox, session_.id}; }
  RequestLog& log() { return log_; }

  // What its client may do, as far as is known. Never null.
  const PermitPtr& permit() const { return permit_; }
  // Likewise, if there are keys that it may not see; else null.
  PermitPtr confinement() const { return permit_->is_confined() ? permit_ : nullptr; }
  // TLS has shaken hands: what the client's certificate says. Before anything is taken in.
  virtual void on_certificate(const CertificateNames& certificate) = 0;
  // Has its client's permit be what it is by now. False: there is none any more, or what it is told
  // unasked is more than it may hear by now, and it is to be closed.
  bool renew_permit();

 protected:
  ServerSession(SessionContext& context, SessionId id, Peer peer)
      : context_(context),
        session_{.id = id, .client = peer.client},
        peer_(std::move(peer)),
        permit_(peer_.is_forwarded() ? context.access.find_principal(peer_, wall_time())
                                     : context.access.permit_for(peer_, false)),
        generation_(context.access.generation()) {}

  // It listens, or watches.
  virtual bool is_told_unasked() const = 0;

  // Precondition: not null, and found just now. Who counts the owners of a permit counts on every
  // thread: so not for nothing.
  void set_permit(const PermitPtr& permit) {
    if (permit_ == permit) return;
    const bool is_renamed = permit_->name != permit->name;
    permit_ = permit;
    if (is_renamed) context_.clients.authenticate(session_.id, permit->name);
  }
  Access::Time wall_time() const {
    return Access::Time(std::chrono::milliseconds(context_.unix_ms()));
  }

  void note(Violation violation) {
    violation_ = violation;
    if (violation == Violation::none) return;
    context_.stats.violations[static_cast<std::size_t>(violation)].add();
  }

  // For the log: the request that is under way there has ended.
  void log_end(std::string_view outcome) {
    if (log_.is_under_way()) log_.end(session_.id, outcome, context_.engine.now());
  }

  // Whether a turn that has taken `taken` bytes for it may go on.
  bool may_take_more(std::size_t taken) const {
    return fate_ == Fate::open && !blocked() &&
           (taken == 0 || !context_.engine.journal_is_behind());
  }
  SessionContext& context_;
  Session session_;
  const Peer peer_;
  Wait wait_;
  Unpublished unpublished_;
  RequestLog log_;
  Fate fate_ = Fate::open;
  Pause pause_ = Pause::none;
  Violation violation_ = Violation::none;
  std::unique_ptr<ServerSession> successor_;  // it takes this one's place
  Time found_no_leader_{};

 private:
  PermitPtr permit_;
  std::uint64_t generation_;  // of the permit
};

inline bool ServerSession::renew_permit() {
  const std::uint64_t generation = context_.access.generation();
  if (generation == generation_) return true;
  generation_ = generation;
  PermitPtr current = peer_.is_forwarded() ? context_.access.find_principal(peer_, wall_time())
                                           : context_.access.current(permit_, wall_time());
  if (current == nullptr || (is_told_unasked() && !current->hears_all_of(*permit_))) return false;
  set_permit(current);
  return true;
}

// Why a server cannot be expected to serve, as /readyz, the overview and the metrics say; empty
// when it can.
inline std::string_view why_not_ready(bool draining, const Engine& engine,
                                      const ClusterJournal* cluster) {
  if (draining) return "draining";
  if (engine.journal_state() == Journal::State::failed) return "storage";
  if (cluster != nullptr) return cluster->status().not_ready;
  return engine.storage_wait() > kStorageWaitMax ? "storage_hangs" : "";
}

}  // namespace lockd
