#include "crash/inspector.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "crash/process.h"
#include "crash/violation.h"

namespace lockd::crash {
namespace {

// The crash of this number is not of the machine: the process has died.
constexpr std::uint64_t kKill = 999;

constexpr std::uint64_t kSetBackPercent = 10;

std::optional<CrashPoint> parse_point(std::string_view text) {
  const auto number = [](std::string_view digits, std::uint64_t* value) {
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, *value);
    return error == std::errc() && rest == end;
  };
  CrashPoint point;
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {};
  if (!number(text.substr(0, dot), &point.call)) return {};
  if (!number(text.substr(dot + 1), &point.image)) return {};
  return point;
}

// Adds where it was to what `crash` throws.
template <typename Crash>
void at(CrashPoint point, Crash crash) {
  try {
    crash();
  } catch (Violation& violation) {
    violation.where = point.text() + (violation.where.empty() ? "" : "/" + violation.where);
    throw;
  }
}

}  // namespace

std::string CrashPoint::text() const { return std::to_string(call) + "." + std::to_string(image); }

std::optional<CrashPath> CrashPath::parse(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto outer = parse_point(std::string_view(text).substr(0, slash));
  if (!outer) return {};
  CrashPath path{.outer = *outer};
  if (slash == std::string::npos) return path;
  path.inner = parse_point(std::string_view(text).substr(slash + 1));
  if (!path.inner) return {};
  return path;
}

// All of them if they are few. Otherwise the two extremes, and others spread over all the ways.
std::optional<Files> Inspector::image(const SimulatedDisk& disk, std::uint64_t number,
                                      std::uint64_t count, Chance chance) {
  const std::uint64_t ways = disk.ways();
  if (ways <= count || number == 0) return disk.after_power_failure(Survival::way(number));
  if (ways > std::uint64_t{1} << 32) return disk.after_power_failure(Survival::at_random(chance));
  if (number == 1) return disk.after_power_failure(Survival::way(ways - 1));
  const std::uint64_t stride = std::max<std::uint64_t>(1, (ways - 2) / (count - 2));
  const std::uint64_t way = 1 + (number - 2) * stride + chance.below(stride);
  return disk.after_power_failure(Survival::way(way));
}

SimulatedDisk Inspector::rebooted(const Files& files, const ClockReading& crashed) {
  SimulatedDisk disk(files);
  disk.now = crashed;
  disk.reboot(kDown);
  return disk;
}

void Inspector::inspect(std::uint64_t call, const SimulatedDisk& disk, const Situation& situation) {
  if (options_.only && options_.only->outer.call != call) return;
  const auto is_wanted = [&](std::uint64_t image) {
    return !options_.only || options_.only->outer.image == image;
  };
  const std::uint64_t count = std::min(disk.ways(), options_.images_per_call);
  for (std::uint64_t number = 0; number < count; ++number) {
    if (!is_wanted(number)) continue;
    const auto files = image(disk, number, count, Chance(options_.seed, call, number));
    if (!files) continue;
    ++stats_.images;
    inspect_crash({call, number}, rebooted(*files, disk.now), Cause::power, situation);
  }
  if (!is_wanted(kKill)) return;
  ++stats_.kills;
  SimulatedDisk left(disk);
  left.advance(kDown);
  inspect_crash({call, kKill}, left, Cause::kill, situation);
}

void Inspector::inspect_crash(CrashPoint point, const SimulatedDisk& left, Cause cause,
                              const Situation& situation) {
  Chance chance(options_.seed + 1, point.call, point.image);
  const bool set_back = cause == Cause::power && chance.percent(kSetBackPercent);
  const bool in_recovery = options_.only ? options_.only->inner.has_value()
                                         : chance.below(options_.recoveries_every) == 0;
  at(point, [&] {
    SimulatedDisk disk(left);
    const Recovered recovered = check_recovery(disk, cause, set_back, situation, stats_);
    if (in_recovery) crash_recovery(point, left, cause, situation, recovered);
  });
}

// The recovery of `expected`, and the first snapshot after it, crashed at each call. If only the
// process has died, what was not acknowledged may be lost until the new one is up.
void Inspector::crash_recovery(CrashPoint point, SimulatedDisk disk, Cause cause,
                               const Situation& situation, const Recovered& expected) {
  bool is_up = false;
  std::uint64_t call = 0;
  disk.watch = [&](SimulatedDisk::Operation operation, const std::string&) {
    ++call;
    ++stats_.recovery_calls[static_cast<std::size_t>(operation)];
    const std::uint64_t count = std::min(disk.ways(), options_.recovery_images_per_call);
    for (std::uint64_t number = 0; number <= count; ++number) {
      const bool kill = number == count;
      const CrashPoint inner{call, kill ? kKill : number};
      if (options_.only && *options_.only->inner != inner) continue;
      const auto files =
          kill ? Files()
               : image(disk, number, count, Chance(options_.seed + call, point.call, number));
      if (!files) continue;
      ++(kill ? stats_.recovery_kills : stats_.recovery_images);
      SimulatedDisk left = kill ? SimulatedDisk(disk) : rebooted(*files, disk.now);
      at(inner, [&] {
        if (is_up || cause == Cause::power || kill) {
          check_same(left, situation.sync_interval, expected, stats_);
        } else {
          Situation later = situation;
          later.now = situation.now + kDown;
          check_recovery(left, Cause::power, false, later, stats_);
        }
      });
    }
  };
  Process process(disk, {.sync_interval = situation.sync_interval});
  is_up = true;
  while (process.log.turn() == Duration::zero()) {
  }
  process.log.flush();
  disk.watch = nullptr;
  const std::string difference = process.journal.describe().differs_from(expected.holds);
  if (!difference.empty()) violated("recovery-idempotent", difference);
  std::vector<std::string> names;
  if (disk.list(&names) || names.size() != 1) {
    violated("log-bounded", std::to_string(names.size()) + " segments after a snapshot");
  }
}

}  // namespace lockd::crash
