// A store that several processes write to: a number, and the largest fence that it has seen.
//
// In memory that the processes share. With its checks on it refuses a fence smaller than one that
// it was shown before, be it to read or to write: a holder that slept through its lease has one.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>

#include "lockd/types.h"

namespace lockd::client {

struct FencedStore {
  std::atomic<bool> checks = true;
  std::atomic<std::uint64_t> writes = 0;     // that were taken
  std::atomic<std::uint64_t> confirmed = 0;  // updates that their writers believe in

  std::optional<std::uint64_t> read(Fence fence) {
    const Guard guard(busy_);
    if (!admits(fence)) return {};
    return value_;
  }
  bool write(Fence fence, std::uint64_t value) {
    const Guard guard(busy_);
    if (!admits(fence)) return false;
    value_ = value;
    ++writes;
    return true;
  }
  std::uint64_t value() {
    const Guard guard(busy_);
    return value_;
  }

  // The store in a file descriptor that is inherited.
  static FencedStore* map(int descriptor) {
    void* const memory =
        ::mmap(nullptr, sizeof(FencedStore), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) std::abort();
    return static_cast<FencedStore*>(memory);
  }

 private:
  // Nobody is stopped while it has this: writers stop themselves, elsewhere.
  struct Guard {
    explicit Guard(std::atomic_flag& flag) : busy(flag) {
      while (busy.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Guard() { busy.clear(std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    std::atomic_flag& busy;
  };

  bool admits(Fence fence) {
    if (!checks) return true;
    if (fence < largest_) return false;
    largest_ = fence;
    return true;
  }

  std::atomic_flag busy_;
  Fence largest_ = 0;
  std::uint64_t value_ = 0;
};

}  // namespace lockd::client
