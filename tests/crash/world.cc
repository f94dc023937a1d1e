#include "crash/world.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "crash/violation.h"
#include "lockd/file_journal.h"

namespace lockd::crash {
namespace {

using std::chrono::milliseconds;
using Operation = SimulatedDisk::Operation;

constexpr int kBatchesAfterFailure = 3;

}  // namespace

World::World(const WorldOptions& options, CrashStats& stats)
    : options_(options),
      stats_(stats),
      chance_(options.seed),
      inspector_(options.inspector, stats),
      disk_(std::make_unique<SimulatedDisk>()) {
  offset_ns_ = disk_->now.wall_ns - disk_->now.boot_ns;  // a new journal goes by the wall clock
}

void World::run() {
  while (calls_ < options_.calls) {
    life_ends_at_ = calls_ + chance_.between(options_.life_min, options_.life_max);
    if (faulted_) look_until_ = calls_ + options_.look_after_fault;
    faulted_ = false;
    disk_->watch = [this](Operation operation, const std::string&) { in_call(operation); };
    disk_->fault = [this](Operation operation, const std::string&) {
      const int error = options_.fault ? options_.fault(++attempts_, operation) : 0;
      if (error != 0) {
        faulted_ = ever_faulted_ = true;
        look_until_ = calls_ + options_.look_after_fault;
      }
      return error;
    };
    if (options_.begins_full && lives_ > 0) disk_->capacity = disk_->size();
    try {
      live();
    } catch (const LifeEnds&) {
    } catch (const JournalError& error) {
      if (!faulted_) violated("recovery-accepts", error.what());
      ++stats_.refused_starts;
      prepare_next_life();
    }
    disk_ = std::move(next_disk_);
  }
}

void World::live() {
  Clients clients(chance_, ledger_);
  Process process(*disk_, {.sync_interval = options_.sync_interval, .history = &history_});
  process_ = &process;
  power_floor_ = kill_floor_ = process.log.durable();
  history_.cut(process.log.durable());
  while (true) {
    step(process, clients);
    if (process.log.state() == Journal::State::failed) step_after_failure(process, clients);
  }
}

void World::step(Process& process, Clients& clients) {
  ++stats_.batches;
  clients.act(process.engine, process.log.durable());
  const bool long_pause = chance_.percent(3);
  disk_->advance(milliseconds(long_pause ? 400 : chance_.below(12)));
  if (chance_.percent(20)) process.engine.sweep();
  if (chance_.percent(75)) turn(process);
  if (chance_.below(150) == 0) stop(process);
  if (!process.journal.is_snapshot_open() && chance_.percent(10)) {
    const std::string difference =
        process.journal.describe().differs_from(*history_.at(history_.end())->holds);
    if (!difference.empty()) violated("replay-equals", "without any crash: " + difference);
  }
  history_.forget_before(situation().power_floor);
  if (options_.between_batches) options_.between_batches(*disk_, process);
  faulted_ |= disk_->capacity != UINT64_MAX;
}

void World::turn(Process& process) {
  process.log.turn();
  const auto since = disk_->unsynced_since();
  if (!since) {
    power_floor_ = process.log.durable();
  } else if (!ever_faulted_ && disk_->now.boot_ns - *since >
                                   static_cast<std::uint64_t>(options_.sync_interval.count())) {
    violated("interval-honoured", "unsynced since " + std::to_string(*since) + ", and it is " +
                                      std::to_string(disk_->now.boot_ns));
  }
}

void World::stop(Process& process) {
  process.log.close();
  if (process.log.state() == Journal::State::failed) return;
  ++stats_.stops;
  power_floor_ = process.log.durable();
  // What waits for room on a disk that has none was told nobody.
  const bool has_room = process.log.state() != Journal::State::exhausted;
  if (has_room && power_floor_ < history_.end()) {
    violated("acknowledged-in-force", "stopped before the end");
  }
  prepare_next_life();
  throw LifeEnds{};
}

// Clients go on, and are told nothing that rests on the journal. Then the life ends.
void World::step_after_failure(Process& process, Clients& clients) {
  ++stats_.failures;
  const Position durable = process.log.durable();
  const std::uint64_t calls = calls_;
  for (int i = 0; i < kBatchesAfterFailure; ++i) {
    clients.act(process.engine, durable);
    disk_->advance(milliseconds(200));
    process.engine.sweep();
    process.log.turn();
  }
  if (process.log.durable() != durable || calls_ != calls) {
    violated("failure-is-final", "durable was " + std::to_string(durable) + ", and is " +
                                     std::to_string(process.log.durable()) + "; " +
                                     std::to_string(calls_ - calls) + " more calls");
  }
  if (!faulted_) violated("failure-is-final", "it failed without a fault");
  inspector_.inspect(++calls_, *disk_, situation());
  prepare_next_life();
  throw LifeEnds{};
}

void World::in_call(Operation operation) {
  ++calls_;
  ++stats_.calls[static_cast<std::size_t>(operation)];
  if (process_ != nullptr && operation == Operation::sync_directory &&
      last_operation_ == Operation::remove) {
    ++stats_.snapshots;
  }
  last_operation_ = operation;
  if (options_.look_after_fault == 0 || calls_ <= look_until_) {
    inspector_.inspect(calls_, *disk_, situation());
  }
  if (calls_ < life_ends_at_) return;
  prepare_next_life();
  throw LifeEnds{};
}

Situation World::situation() const {
  const bool always = options_.sync_interval == Duration::zero();
  const Position durable = process_ != nullptr ? process_->log.durable() : kill_floor_;
  return {.history = history_,
          .ledger = ledger_,
          .sync_interval = options_.sync_interval,
          .durable = durable,
          .power_floor = process_ != nullptr && always ? durable : power_floor_,
          .kill_floor = durable,
          .now = now() + Inspector::kDown};
}

void World::prepare_next_life() {
  const Situation last = situation();
  if (process_ != nullptr) process_->journal.cut_off();  // it dies: nothing is told any more
  process_ = nullptr;
  power_floor_ = last.power_floor;
  kill_floor_ = last.kill_floor;
  if (++lives_ % 2 == 0) return lose_power(last);
  ++stats_.process_deaths;
  next_disk_ = std::make_unique<SimulatedDisk>(*disk_);
  next_disk_->advance(Inspector::kDown);
  ledger_.restart(last.durable);
}

void World::lose_power(const Situation& last) {
  ++stats_.power_failures;
  const std::uint64_t count = std::min<std::uint64_t>(disk_->ways(), 8);
  auto files = Inspector::image(*disk_, chance_.below(count), count, Chance(chance_.next()));
  if (!files) files = disk_->after_power_failure(Survival::way(0));
  next_disk_ = std::make_unique<SimulatedDisk>(Inspector::rebooted(*files, disk_->now));

  SimulatedDisk copy(*next_disk_);
  const Recovered left = check_recovery(copy, Cause::power, false, last, stats_);
  history_.cut(left.position);
  power_floor_ = kill_floor_ = left.position;
  offset_ns_ = last.now.ns - next_disk_->now.boot_ns;
  if (options_.sync_interval == Duration::zero()) {
    ledger_.restart(last.durable);
  } else {
    ledger_.forget(last.durable);
  }
}

}  // namespace lockd::crash
