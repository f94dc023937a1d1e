// Faults on demand: a library that LD_PRELOAD puts between lockd and the system.
//
// What goes wrong is said in the environment:
//
//   LOCKD_FAULT_SYNC=n          the nth fsync or fdatasync fails with EIO, once: a second try would
//                               succeed, as it does on Linux
//   LOCKD_FAULT_LOSES=1         what was written to that file since its last sync is lost then
//   LOCKD_FAULT_MARK=path       the steady clock's nanoseconds at that moment are left there
//   LOCKD_FAULT_HALVES=1        every other call is interrupted by a signal, and no write writes
//                               more than half of what it is given
//   LOCKD_FAULT_SLOW_US=n       every write and every sync begins that many microseconds late
//   LOCKD_FAULT_SPACE=bytes     files that grow find the disk full, when their directory would come
//                               to more than that
//   LOCKD_FAULT_RELIEF=path     and no longer, once there is a file of this name
//   LOCKD_FAULT_WALL_S=seconds  added to CLOCK_REALTIME
//   LOCKD_FAULT_BOOT_S=seconds  added to CLOCK_BOOTTIME
//   LOCKD_FAULT_BOOT_ID=path    read in place of the kernel's id of this boot
//   LOCKD_FAULT_LIVE=path       more of that, which begins and ends at any time: see live_faults.h
//
// Only what the journal calls is replaced, and by the names under which glibc has it.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "support/live_faults.h"

namespace {

namespace fs = std::filesystem;

const char* text_of(const char* name) { return std::getenv(name); }

long long number_of(const char* name) {
  const char* const text = text_of(name);
  return text == nullptr ? 0 : std::atoll(text);
}

// Read once: the environment does not change, and the server takes secrets out of it.
struct Faults {
  const long long sync = number_of("LOCKD_FAULT_SYNC");
  const bool loses = number_of("LOCKD_FAULT_LOSES") != 0;
  const char* const mark = text_of("LOCKD_FAULT_MARK");
  const bool halves = number_of("LOCKD_FAULT_HALVES") != 0;
  const long long slow_us = number_of("LOCKD_FAULT_SLOW_US");
  const long long space = number_of("LOCKD_FAULT_SPACE");
  const char* const relief = text_of("LOCKD_FAULT_RELIEF");
  const long long wall_s = number_of("LOCKD_FAULT_WALL_S");
  const long long boot_s = number_of("LOCKD_FAULT_BOOT_S");
  const char* const boot_id = text_of("LOCKD_FAULT_BOOT_ID");
};

const Faults& faults() {
  static const Faults all;
  return all;
}

lockd::LiveFaults& live() {
  static lockd::LiveFaults none{};
  static const char* const path = text_of("LOCKD_FAULT_LIVE");
  static lockd::LiveFaults* const all = path == nullptr ? &none : lockd::LiveFaults::map(path);
  return *all;
}

bool halves() { return faults().halves || live().halves != 0; }

// The function that would have been called without us.
template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

ssize_t really_write(int fd, const void* bytes, std::size_t size, off_t at) {
  static auto* const call = real<ssize_t(int, const void*, std::size_t, off_t)>("pwrite");
  return call(fd, bytes, size, at);
}

bool is_interrupted() {
  static std::atomic<unsigned> calls{0};
  if (!halves() || calls.fetch_add(1) % 2 != 0) return false;
  errno = EINTR;
  return true;
}

void dawdle() {
  const std::int64_t us = faults().slow_us + live().slow_us;
  if (us != 0) ::usleep(static_cast<useconds_t>(us));
}

void hang() {
  if (live().hung == 0) return;
  ++live().waiting;
  while (live().hung != 0 && live().let_pass == 0) ::usleep(1000);
  --live().waiting;
  if (live().let_pass > 0) --live().let_pass;
}

// What files held before they were written to, as far as no sync has come since.
class Unsynced {
 public:
  void note(int fd, std::size_t size, off_t at) {
    std::string before(size, '\0');  // zeros where there was nothing yet
    if (::pread(fd, before.data(), size, at) < 0) std::abort();
    const std::lock_guard lock(mutex_);
    writes_.push_back({fd, at, std::move(before)});
  }

  void forget(int fd) {
    const std::lock_guard lock(mutex_);
    std::erase_if(writes_, [fd](const Write& write) { return write.fd == fd; });
  }

  void take_back(int fd) {
    const std::lock_guard lock(mutex_);
    for (auto write = writes_.rbegin(); write != writes_.rend(); ++write) {
      if (write->fd != fd) continue;
      really_write(fd, write->before.data(), write->before.size(), write->at);
    }
  }

 private:
  struct Write {
    int fd;
    off_t at;
    std::string before;
  };

  std::mutex mutex_;
  std::vector<Write> writes_;
};

Unsynced& unsynced() {
  static auto* const all = new Unsynced;  // used until the very end
  return *all;
}

void leave_mark() {
  if (faults().mark == nullptr) return;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::string text =
      std::to_string(std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec) + "\n";
  const int fd = ::openat(AT_FDCWD, faults().mark, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0 || ::write(fd, text.data(), text.size()) < 0) std::abort();
  ::close(fd);
}

bool fails_live() {
  if (live().fail_sync == 0 || live().fail_sync.exchange(0) == 0) return false;
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  live().failed_at = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec - live().boot_ns -
                     faults().boot_s * 1'000'000'000;
  errno = EIO;
  return true;
}

int sync_with_faults(int fd, int (*sync)(int)) {
  static std::atomic<long long> calls{0};
  dawdle();
  hang();
  if (is_interrupted()) return -1;
  if (fails_live()) return -1;
  if (faults().sync != 0 && calls.fetch_add(1) + 1 == faults().sync) {
    if (faults().loses) unsynced().take_back(fd);
    leave_mark();
    errno = EIO;
    return -1;
  }
  const int result = sync(fd);
  if (result == 0) unsynced().forget(fd);
  return result;
}

// Whether there is space for a file to be `end` bytes long.
bool has_space(int fd, off_t end) {
  if (faults().space == 0 && live().full == 0) return true;
  if (faults().relief != nullptr && ::access(faults().relief, F_OK) == 0) return true;
  struct stat status {};
  if (::fstat(fd, &status) != 0 || end <= status.st_size) return true;
  if (live().full != 0) {
    errno = ENOSPC;
    return false;
  }
  std::error_code gone;
  const fs::path file = fs::read_symlink("/proc/self/fd/" + std::to_string(fd), gone);
  std::intmax_t used = end - status.st_size;
  for (const fs::directory_entry& entry : fs::directory_iterator(file.parent_path(), gone)) {
    const std::uintmax_t size = entry.file_size(gone);
    if (!gone) used += static_cast<std::intmax_t>(size);
  }
  if (used <= faults().space) return true;
  errno = ENOSPC;
  return false;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

ssize_t pwrite(int fd, const void* bytes, std::size_t size, off_t at) {
  dawdle();
  if (is_interrupted()) return -1;
  if (halves()) size = std::max<std::size_t>(size / 2, 1);
  if (!has_space(fd, at + static_cast<off_t>(size))) return -1;
  if (faults().loses) unsynced().note(fd, size, at);
  return really_write(fd, bytes, size, at);
}

int fallocate(int fd, int mode, off_t at, off_t size) {
  static auto* const call = real<int(int, int, off_t, off_t)>("fallocate");
  if (is_interrupted() || !has_space(fd, at + size)) return -1;
  return call(fd, mode, at, size);
}

int fdatasync(int fd) { return sync_with_faults(fd, real<int(int)>("fdatasync")); }

int fsync(int fd) { return sync_with_faults(fd, real<int(int)>("fsync")); }

int open(const char* path, int flags, ...) {
  static auto* const call = real<int(const char*, int, ...)>("open");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const bool is_boot_id = std::strcmp(path, "/proc/sys/kernel/random/boot_id") == 0;
  return call(is_boot_id && faults().boot_id != nullptr ? faults().boot_id : path, flags, mode);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static auto* const call = real<int(clockid_t, timespec*)>("clock_gettime");
  const int result = call(clock, time);
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += faults().wall_s + live().wall_s;
  if (result == 0 && clock == CLOCK_BOOTTIME) {
    const std::int64_t ns = time->tv_nsec + live().boot_ns;  // which is never negative
    time->tv_sec += faults().boot_s + ns / 1'000'000'000;
    time->tv_nsec = ns % 1'000'000'000;
  }
  return result;
}

}  // extern "C"
#pragma GCC visibility pop
