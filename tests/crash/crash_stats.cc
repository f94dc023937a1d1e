#include "crash/crash_stats.h"

#include <numeric>

namespace lockd::crash {

namespace {

std::ostream& operator<<(std::ostream& out, const CrashStats::Calls& calls) {
  out << std::accumulate(calls.begin(), calls.end(), std::uint64_t{0}) << " (";
  for (std::size_t i = 0; i < calls.size(); ++i) {
    out << (i == 0 ? "" : ", ") << calls[i] << " "
        << SimulatedDisk::name_of(static_cast<SimulatedDisk::Operation>(i));
  }
  return out << ")";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const CrashStats& f) {
  out << f.total_images() << " crash images: " << f.images << " by power failure, " << f.kills
      << " by death of the process; during recovery " << f.recovery_images << " and "
      << f.recovery_kills << "\n"
      << "at calls of the script: " << f.calls << "\n"
      << "at calls of recoveries: " << f.recovery_calls;
  return out << "\n"
             << f.batches << " batches, " << f.snapshots << " compactions, " << f.power_failures
             << " power failures and " << f.process_deaths << " deaths lived through, " << f.stops
             << " of them after a stop, " << f.failures << " failures, " << f.refused_starts
             << " starts refused\n"
             << f.torn_tails << " torn tails, " << f.never_began << " segments that never began, "
             << f.several_segments << " recoveries from several segments, " << f.kept_unasked
             << " that kept more than was acknowledged, " << f.lost_unasked
             << " that lost what was not, " << f.clocks_set_back << " with the clock set back, "
             << f.holds_recovered << " holds recovered";
}

}  // namespace lockd::crash
