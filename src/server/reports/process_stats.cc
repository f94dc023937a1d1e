#include "server/reports/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace lockd {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double cpu_seconds() {
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) != 0) return 0;
  return seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

void read_memory(ProcessStats& stats) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::uint64_t pages = 0;
  std::uint64_t resident = 0;
  if (!(std::ifstream("/proc/self/statm") >> pages >> resident)) return;
  stats.virtual_bytes = pages * page;
  stats.resident_bytes = resident * page;
}

std::uint64_t count_open_files() {
  std::error_code error;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; it != end && !error;
       it.increment(error)) {
    ++count;
  }
  return count > 0 ? count - 1 : 0;  // less the one that they are counted by
}

std::uint64_t count_open_files_max() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

// When the machine started, by the wall clock.
double boot_unix_seconds() {
  std::ifstream stat("/proc/stat");
  for (std::string word; stat >> word;) {
    double seconds = 0;
    if (word == "btime" && stat >> seconds) return seconds;
  }
  return 0;
}

// The 22nd field of the process's stat, counted from behind its name, which may hold anything.
double started_after_boot_seconds() {
  constexpr int kFieldsBetween = 19;
  std::string line;
  std::getline(std::ifstream("/proc/self/stat"), line);
  std::size_t at = line.rfind(')');
  for (int i = 0; i <= kFieldsBetween && at != std::string::npos; ++i) at = line.find(' ', at + 1);
  if (at == std::string::npos) return 0;
  return std::strtod(line.c_str() + at, nullptr) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

ProcessStats read_process_stats() {
  ProcessStats stats{.cpu_seconds = cpu_seconds(),
                     .open_files = count_open_files(),
                     .open_files_max = count_open_files_max(),
                     .started_unix_seconds = boot_unix_seconds() + started_after_boot_seconds()};
  read_memory(stats);
  return stats;
}

}  // namespace lockd
