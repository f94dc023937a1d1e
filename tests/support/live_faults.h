// Faults that begin and end while a server runs: a few numbers in a file that fault_shim maps, and
// that a test changes.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace lockd {

// All zero: nothing is wrong.
struct LiveFaults {
  std::atomic<std::int64_t> wall_s;     // added to CLOCK_REALTIME
  std::atomic<std::int64_t> boot_ns;    // added to CLOCK_BOOTTIME
  std::atomic<std::int64_t> slow_us;    // every write and every sync begins that late
  std::atomic<std::int64_t> full;       // files cannot grow
  std::atomic<std::int64_t> halves;     // calls are interrupted, writes are short
  std::atomic<std::int64_t> fail_sync;  // the next sync fails with EIO, and sets this to 0
  std::atomic<std::int64_t> failed_at;  // CLOCK_BOOTTIME's nanoseconds, as they are, at that moment
  std::atomic<std::int64_t> hung;       // syncs wait until this is 0, but for
  std::atomic<std::int64_t> let_pass;   // so many, which is counted down
  std::atomic<std::int64_t> waiting;    // how many wait now

  // The file is made if it is not there, and stays.
  static LiveFaults* map(const char* path) {
    const int file = ::openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(LiveFaults)) != 0) std::abort();
    void* const memory =
        ::mmap(nullptr, sizeof(LiveFaults), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) std::abort();
    ::close(file);
    return static_cast<LiveFaults*>(memory);
  }
};

}  // namespace lockd
