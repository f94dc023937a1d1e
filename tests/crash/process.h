// A server's process in small: the journal on a disk, and an engine that has recovered from it.
// The journal's thread is the test, which calls turn().
#pragma once

#include "crash/log_prefixes.h"
#include "crash/simulated_disk.h"
#include "crash/witnessed_journal.h"
#include "journal/log_journal.h"
#include "lockd/engine.h"

namespace lockd::crash {

struct ProcessOptions {
  Duration sync_interval{};
  LogPrefixes* history = nullptr;
  Log log = [](std::string_view) {};
};

class Process {
 public:
  // Throws JournalError, as a start does.
  Process(SimulatedDisk& disk, const ProcessOptions& options)
      : log(disk, journal_options(options)),
        clock(log),
        journal(log, clock, options.history),
        engine({.shards = kShards,
                .clock = &clock,
                .journal = &journal,
                .sweeper = false,
                .hash_seed = 1}) {}

  static constexpr std::uint32_t kShards = 2;

 private:
  class LogClock final : public Clock {
   public:
    explicit LogClock(const LogJournal& log) : log_(log) {}
    Time now() const noexcept override { return log_.now(); }

   private:
    const LogJournal& log_;
  };

  // Small, so that segments follow on one another quickly, and snapshots take several turns.
  static LogJournalOptions journal_options(const ProcessOptions& options) {
    LogJournalOptions small;
    small.sync_interval = options.sync_interval;
    small.log = options.log;
    small.segment_size = 3000;
    small.segment = {.reserve = 1024, .step_min = 1024, .step_max = 4096};
    small.describe_ahead = 256;
    small.id = JournalId{0x1d};
    return small;
  }

 public:
  LogJournal log;
  LogClock clock;
  WitnessedJournal journal;
  Engine engine;
};

}  // namespace lockd::crash
