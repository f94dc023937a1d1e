// One life of a server: the engine, the journal, the SessionHost and its sessions are the real
// ones; in place of sockets, threads and a disk it has what the simulation gives it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "crash/simulated_disk.h"
#include "crash/witnessed_journal.h"
#include "journal/log_journal.h"
#include "lockd/engine.h"
#include "pubsub/signal_hub.h"
#include "server/session/session_host.h"
#include "server/session/testing/pieced_report.h"
#include "simulation/appended_log.h"
#include "simulation/key_event_checker.h"
#include "simulation/swarm.h"

namespace lockd::simulation {

// Where the server is. All of it outlives the server.
struct Place {
  crash::SimulatedDisk& disk;
  const Swarm& swarm;
  KeyEventChecker& key_event_checker;
  AppendedLog& log;
  std::function<void(std::uint64_t wire, std::string_view bytes)> send;
  std::function<void(std::uint64_t wire)> close;
};

class Server {
 public:
  // Recovers. Throws JournalError.
  Server(const Place& place, std::uint64_t life);
  ~Server();

  void open(std::uint64_t wire, bool is_http);
  void receive(std::uint64_t wire, std::string_view bytes);
  void receive_end(std::uint64_t wire);
  void receive_reset(std::uint64_t wire);

  // Ends the turn in which all that has arrived since the last was executed.
  void turn();
  // Whether something was executed, and not yet committed.
  bool is_in_turn() const { return is_in_turn_; }
  // How long it may be until the journal's next turn.
  Duration journal_turn() { return log_->turn(); }
  // Ends what has fallen due. False if nothing can have.
  bool sweep();
  // What an admin asks for, in a batch of its own; the answer rests on `position`.
  RevokeResult revoke(const RevokeRequest& request, Position* position);
  Outcome resize(std::string_view key, std::uint32_t limit);
  // As on SIGTERM: those who hold are served on. Who does not hold any more is found by
  // recheck().
  void drain();
  bool is_draining() const { return is_draining_; }
  void recheck();
  // Whether nobody is connected by a line any more.
  bool has_no_holders() const;
  // To the end; what is left is cut.
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
  std::uint64_t requests() const;
  // Whether the session of that wire goes on.
  bool is_open(std::uint64_t wire) const { return find(wire) != nullptr; }
  // It is over, and has not ended all that it had: the table was behind.
  bool is_ending(std::uint64_t wire) const;

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

  class WireTransport;

  WireTransport* find(std::uint64_t wire) const;
  bool resume_held_back();
  void end_pauses();
  HostSetup host_setup();

  const Place place_;
  std::optional<LogJournal> log_;
  std::unique_ptr<VirtualClock> clock_;
  std::optional<crash::WitnessedJournal> journal_;
  std::unique_ptr<Engine> engine_;
  SignalHub hub_;
  ReportQueue reports_{[](const ReportRequest& request) {
                         return PiecedReport::answer(request, {"{", "", "}"});
                       },
                       [this](ReportQueue::Lane lane) {
                         while (reports_.make_some(lane)) continue;
                       }};
  ClientRegistry clients_;
  EventFeed feed_;  // which nobody watches: the engine's observer is the checker
  const Access access_;
  Words secrets_;
  WorkerStats stats_;
  std::map<std::uint64_t, WireTransport*> wires_;  // whose transports the host still has
  std::unique_ptr<SessionHost> host_;
  Time next_sweep_{};  // unless something was done since
  bool turned_ = true;
  bool is_in_turn_ = false;
  bool is_draining_ = false;
};

}  // namespace lockd::simulation
