// One life of a server: the engine, the journal and the conversations are the real ones; in place
// of sockets, threads and a disk it has what the simulation gives it. What a worker does in a turn
// is done here as there: requests are executed, committed together, and no answer leaves before
// what it rests on is durable.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crash/simulated_disk.h"
#include "crash/witnessed_journal.h"
#include "journal/log_journal.h"
#include "lockd/batch.h"
#include "lockd/engine.h"
#include "pubsub/signal_hub.h"
#include "server/session/server_session.h"
#include "simulation/appended_log.h"
#include "simulation/swarm.h"
#include "simulation/witness.h"

namespace lockd::simulation {

// Where the server is. All of it outlives the server.
struct Place {
  crash::SimulatedDisk& disk;
  const Swarm& swarm;
  Witness& witness;
  AppendedLog& log;
  std::function<void(std::uint64_t wire, std::string_view bytes)> send;
  std::function<void(std::uint64_t wire)> close;
};

class Server final : private Listener, private Mailbox, private Desk {
 public:
  // Recovers. Throws JournalError.
  Server(const Place& place, std::uint64_t life);
  ~Server();

  void open(std::uint64_t wire, bool is_http);
  void receive(std::uint64_t wire, std::string_view bytes);
  void receive_end(std::uint64_t wire);
  void receive_reset(std::uint64_t wire);

  // Executes what has arrived.
  void turn();
  // How long it may be until the journal's next turn.
  Duration journal_turn();
  // Ends what has fallen due. False if nothing can have.
  bool sweep();
  // As on SIGTERM, to the end.
  void stop();
  // It is no more: whatever its destructors do, nobody hears of it.
  void die();

  bool has_journal() const { return log_.has_value(); }
  bool wants_journal() const { return log_ && log_->is_wanted(); }
  bool has_failed() const { return log_ && log_->state() == Journal::State::failed; }
  bool is_full() const { return log_ && log_->state() == Journal::State::full; }
  Position durable() const { return log_ ? log_->durable() : 0; }
  crash::Holds holds() { return journal_->describe(); }
  const Engine& engine() const { return *engine_; }
  std::uint64_t requests() const { return figures_.line_requests.value() + http_requests(); }
  bool is_open(std::uint64_t wire) const {
    const auto found = connections_.find(wire);
    return found != connections_.end() && !found->second.finishing;
  }

 private:
  // Words that are the same in every run.
  class Words final : public TokenSource {
   public:
    explicit Words(std::uint64_t seed) : chance_(seed) {}
    std::uint64_t next() override { return chance_.next(); }

   private:
    Chance chance_;
  };

  class VirtualClock final : public Clock {
   public:
    // Without a journal it begins with the wall clock.
    VirtualClock(const crash::SimulatedDisk& disk, const LogJournal* log)
        : disk_(disk), log_(log), offset_ns_(disk.now.wall_ns - disk.now.boot_ns) {}
    Time now() const noexcept override {
      return log_ != nullptr ? log_->now() : Time{disk_.now.boot_ns + offset_ns_};
    }

   private:
    const crash::SimulatedDisk& disk_;
    const LogJournal* const log_;
    const std::uint64_t offset_ns_;
  };

  // What is written waits for its position.
  struct Held {
    Position position;
    std::string bytes;
  };
  struct Connection {
    std::unique_ptr<ServerSession> session;
    std::string unread{};
    std::string out{};
    std::deque<Held> held{};
    bool input_ended = false;
    bool finishing = false;  // its session has ended; what is held is still to be sent
    bool touched = false;
  };
  using Connections = std::map<std::uint64_t, Connection>;  // by wire, which is the session's id

  struct Abandoned {
    Kind kind;
    std::string key;
    std::string holder;
  };

  enum class Ender : std::uint8_t { peer, server };

  void on_wait_done(const WaitResult& settled) noexcept override { inbox_.push_back(settled); }
  void deliver(std::span<const std::uint64_t> subscribers,
               const std::shared_ptr<const Signal>& signal) noexcept override;
  void ask(SessionId id, ReportRequest) override { reports_.push_back(id); }
  void watch_events(SessionId) override {}
  void abandon(SessionId id, Kind kind, std::string_view key, std::string_view holder) override {
    abandoned_.insert_or_assign(id, Abandoned{kind, std::string(key), std::string(holder)});
  }

  void touch(std::uint64_t wire, Connection& connection);
  void take_in(Connection& connection);
  bool take_inbox();
  void settle(std::uint64_t wire, Connection& connection, const WaitResult& settled);
  void take_back(const WaitResult& settled);
  void flush(Connection& connection, Position position);
  void release_held();
  void end_session(Connection& connection, Ender ender);
  std::uint64_t http_requests() const;

  const Place place_;
  std::optional<LogJournal> log_;
  std::unique_ptr<VirtualClock> clock_;
  std::optional<crash::WitnessedJournal> journal_;
  std::unique_ptr<Engine> engine_;
  SignalHub hub_;
  std::optional<Batch> batch_;
  Words secrets_;
  WorkerStats figures_;
  std::unique_ptr<SessionContext> context_;
  Connections connections_;
  std::vector<std::uint64_t> touched_;
  std::vector<WaitResult> inbox_;
  std::vector<std::pair<std::uint64_t, std::shared_ptr<const Signal>>> signals_;
  std::vector<SessionId> reports_;
  std::map<SessionId, Abandoned> abandoned_;
  Time next_sweep_{};  // unless something was done since
  bool turned_ = true;
};

}  // namespace lockd::simulation
