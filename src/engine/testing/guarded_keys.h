// The resources of the stress tests. They check the number of holders and that fences increase.
// Thread-safe.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lockd/types.h"

namespace lockd {

class GuardedKeys {
 public:
  static constexpr std::size_t kKeys = 4;
  static constexpr std::uint32_t kPermits = 3;

  static std::string name(std::size_t key) { return "key-" + std::to_string(key); }
  static std::uint32_t limit(Kind kind) { return kind == Kind::lock ? 1 : kPermits; }

  // Precondition: the lease is far from its end.
  void enter(std::size_t key, Kind kind, Fence fence) {
    Guarded& guarded = at(key, kind);
    EXPECT_LE(guarded.inside.fetch_add(1) + 1, limit(kind)) << "holders-bounded";
    if (kind == Kind::lock) {
      EXPECT_GT(fence, guarded.last_fence.exchange(fence)) << "fences-rise";
    }
  }
  void leave(std::size_t key, Kind kind) { at(key, kind).inside.fetch_sub(1); }

  std::atomic<std::uint64_t> calls{0};  // of acquire

 private:
  struct Guarded {
    std::atomic<std::uint32_t> inside{0};
    std::atomic<Fence> last_fence{0};
  };

  Guarded& at(std::size_t key, Kind kind) {
    return kind == Kind::lock ? locks_[key] : semaphores_[key];
  }

  std::array<Guarded, kKeys> locks_;
  std::array<Guarded, kKeys> semaphores_;
};

}  // namespace lockd
