// What becomes of the engine as keys get more: memory for each, and time to release one of them and
// to acquire it again while all the others are held.
//
// Run by `make bench`; see docs/performance.md. Times are CPU time of the calling thread, medians
// of the parts of a walk that the caches cannot foresee.
//
//   growth_bench [KEYS_MAX], 10,000,000 unless told
#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "candidate.h"
#include "keys.h"
#include "lockd/engine.h"
#include "record.h"

namespace lockd::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kParts = 9;
constexpr int kCallsInPart = 100'000;
constexpr std::size_t kBytesPerKey = 300;  // ours included, generously

std::size_t heap_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

double thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// What may be used before the machine runs short; 0 when nobody knows.
std::size_t memory_available() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return std::stoul(line.substr(13)) * 1024;
  }
  return 0;
}

class HeldKeys {
 public:
  explicit HeldKeys(std::size_t count)
      : keys_(count), fences_(count), engine_({.keys_max = count}) {
    const std::size_t before = heap_in_use();
    for (std::size_t i = 0; i < count; ++i) acquire(i);
    bytes_per_key_ = static_cast<double>(heap_in_use() - before) / static_cast<double>(count);
  }

  double bytes_per_key() const { return bytes_per_key_; }

  // To release one and acquire it again.
  double time_ns() {
    Walk walk(keys_.size(), true);
    std::vector<double> parts;
    for (int part = 0; part < kParts; ++part) {
      const double start = thread_cpu_ns();
      for (int call = 0; call < kCallsInPart; ++call) take_again(walk.next());
      parts.push_back((thread_cpu_ns() - start) / kCallsInPart);
    }
    return median(parts);
  }

 private:
  void acquire(std::size_t i) {
    fences_[i] = engine_.acquire({.keys = keys_[i], .holder = "holder-1", .ttl = 3600s})->fence;
  }
  void take_again(std::size_t i) {
    engine_.release({.keys = keys_[i], .holder = "holder-1", .fence = fences_[i]});
    acquire(i);
  }

  Keys keys_;
  std::vector<Fence> fences_;
  Engine engine_;
  double bytes_per_key_ = 0;
};

void run(std::size_t keys_max) {
  std::printf("%10s %12s %26s\n", "held keys", "bytes a key", "ns to release and acquire");
  for (std::size_t count = 1'000; count <= keys_max; count *= 10) {
    if (const std::size_t memory = memory_available(); memory < count * kBytesPerKey) {
      std::printf("%10zu keys do not fit into the %zu MB that are free\n", count,
                  memory / 1'000'000);
      break;
    }
    HeldKeys keys(count);
    const double time_ns = keys.time_ns();
    std::printf("%10zu %12.0f %26.0f\n", count, keys.bytes_per_key(), time_ns);
    std::fflush(stdout);
    record("growth", {{"keys", count}, {"key_bytes", keys.bytes_per_key()}, {"pair_ns", time_ns}});
  }
}

}  // namespace
}  // namespace lockd::bench

int main(int argc, char** argv) {
  try {
    lockd::bench::run(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10'000'000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "growth_bench: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
