#include "crash/recovery_check.h"

#include <chrono>
#include <optional>
#include <string>

#include "crash/process.h"
#include "crash/violation.h"
#include "lockd/batch.h"
#include "lockd/file_journal.h"

namespace lockd::crash {
namespace {

using namespace std::chrono_literals;
using std::to_string;

constexpr Duration kSetBack = 1h;

// A floor of fences that the journal adds of its own accord is not in the history.
constexpr Position kOwnRecords = 64;

// A process, and what its start has met with.
class Start {
 public:
  Start(SimulatedDisk& disk, Duration sync_interval, CrashStats& stats) {
    disk.watch = [&](SimulatedDisk::Operation operation, const std::string&) { count(operation); };
    const auto log = [&](std::string_view line) {
      if (line.find(": cut ") != line.npos) ++stats.torn_tails;
    };
    try {
      process_.emplace(disk, ProcessOptions{.sync_interval = sync_interval, .log = log});
    } catch (const std::runtime_error& error) {
      violated("recovery-accepts", error.what());
    }
    disk.watch = nullptr;
    stats.never_began += removed_;
    stats.several_segments += synced_ > 1;
  }

  Process& process() { return *process_; }

 private:
  using Operation = SimulatedDisk::Operation;

  // Before a segment is created what was there is repaired: only then is one removed, and each that
  // is needed is synced.
  void count(Operation operation) {
    created_ |= operation == Operation::create;
    removed_ += operation == Operation::remove;
    synced_ += operation == Operation::sync && !created_;
  }

  std::optional<Process> process_;
  bool created_ = false;
  std::uint64_t removed_ = 0;
  std::uint64_t synced_ = 0;
};

void check_position(Position position, Cause cause, const Situation& s) {
  const Position floor = cause == Cause::power ? s.power_floor : s.kill_floor;
  if (position < floor) {
    violated("acknowledged-in-force", "recovered up to position " + to_string(position) +
                                          ", acknowledged up to " + to_string(floor));
  }
  const Position own = s.sync_interval == Duration::zero() ? 0 : kOwnRecords;
  if (position > s.history.end() + own) {
    violated("nothing-invented", "recovered up to position " + to_string(position) +
                                     ", appended up to " + to_string(s.history.end()));
  }
  if (s.history.at(position) == nullptr) {
    violated("all-or-nothing", "position " + to_string(position) + " is inside of an operation");
  }
}

void check_holds(const Recovered& recovered, Cause cause, const Situation& s) {
  const std::string difference =
      recovered.holds.differs_from(*s.history.at(recovered.position)->holds);
  if (!difference.empty()) {
    violated("replay-equals", "at position " + to_string(recovered.position) + ": " + difference);
  }
  // With an interval a power failure may undo what was told.
  if (cause == Cause::power && s.sync_interval != Duration::zero()) return;
  s.ledger.check(recovered.holds, s.durable, s.now);
}

void check_time(Time now, Position position, bool set_back, const Situation& s) {
  const Time least = set_back ? s.history.at(position)->time : s.now;
  if (now < least || now > s.now) {
    violated("time-goes-on", "it is " + to_string(now.ns) + ", and should be " +
                                 (set_back ? "from " + to_string(least.ns) + " to " : "") +
                                 to_string(s.now.ns));
  }
}

// A stranger gets nothing that is held; the owner renews and releases what has not run out.
void check_owners(Engine& engine, const Holds& holds) {
  Batch batch(engine);
  for (const auto& [key, held] : holds.all()) {
    const bool over = held.expires_at <= engine.now();
    const HoldId id{KeyItem(key.key, key.kind), holder_of(held.owner), key.fence};
    const AcquireRequest stranger{.keys = KeyItem(key.key, key.kind, Mode::exclusive, held.limit),
                                  .holder = "stranger",
                                  .ttl = 1s};
    if (key.kind == Kind::lock && !over && batch.acquire(stranger).outcome != Outcome::held) {
      violated("owners-keep", show(key) + " is held, and was granted to a stranger");
    }
    const Outcome renewed = batch.renew(id).outcome;
    if ((renewed == Outcome::ok) == over) {
      violated("owners-keep",
               show(key) + ", renewed by " + held.owner + ": " + std::string(describe(renewed)));
    }
    const Outcome released = batch.release(id).outcome;
    if ((released == Outcome::ok) == over) {
      violated("owners-keep",
               show(key) + ", released by " + held.owner + ": " + std::string(describe(released)));
    }
  }
}

// In every shard, so several keys.
void check_fences(Engine& engine, Fence told) {
  Batch batch(engine);
  for (const char* key : {"probe-1", "probe-2", "probe-3", "probe-4"}) {
    const Answer answer = batch.acquire({.keys = key, .holder = "prober", .ttl = 1s});
    if (answer.outcome != Outcome::ok || answer.grant.fence <= told) {
      violated("fences-rise", "after a fence of " + to_string(told) + " was told, the next is " +
                                  to_string(answer.grant.fence) + " (" +
                                  std::string(describe(answer.outcome)) + ")");
    }
  }
}

}  // namespace

Recovered check_recovery(SimulatedDisk& disk, Cause cause, bool set_back, const Situation& s,
                         CrashStats& stats) {
  if (set_back) {
    ++stats.clocks_set_back;
    disk.now.wall_ns -= static_cast<std::uint64_t>(kSetBack.count());
  }
  Start start(disk, s.sync_interval, stats);
  Process& process = start.process();
  const Recovered recovered{process.log.durable(), process.journal.describe()};
  check_position(recovered.position, cause, s);
  check_holds(recovered, cause, s);
  check_time(process.clock.now(), recovered.position, set_back, s);

  const Position floor = cause == Cause::power ? s.power_floor : s.kill_floor;
  if (recovered.position > floor) ++stats.kept_unasked;
  if (recovered.position < s.history.end()) ++stats.lost_unasked;
  stats.holds_recovered += recovered.holds.all().size();

  process.journal.cut_off();
  check_owners(process.engine, recovered.holds);
  check_fences(process.engine, s.ledger.largest_fence(s.durable));
  return recovered;
}

void check_same(SimulatedDisk& disk, Duration sync_interval, const Recovered& expected,
                CrashStats& stats) {
  Start start(disk, sync_interval, stats);
  if (start.process().log.durable() < expected.position) {
    violated("recovery-idempotent", "recovered up to position " +
                                        to_string(start.process().log.durable()) + ", before to " +
                                        to_string(expected.position));
  }
  const std::string difference = start.process().journal.describe().differs_from(expected.holds);
  if (!difference.empty()) violated("recovery-idempotent", difference);
}

}  // namespace lockd::crash
