// What this process takes of the machine, as every client of Prometheus tells it.
#pragma once

#include <cstdint>

namespace lockd {

struct ProcessStats {
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t open_files = 0;
  std::uint64_t open_files_max = 0;
  double started_unix_seconds = 0;
};

// What cannot be read is 0.
ProcessStats read_process_stats();

}  // namespace lockd
