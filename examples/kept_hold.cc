// Copies a file piece by piece, for as long as the lock is held.
#include <chrono>
#include <cstdio>

#include "lockd/engine.h"

using namespace std::chrono_literals;

int main() {
  lockd::Engine engine;
  {
    // Waits in the queue for up to ten seconds. From then on the engine renews the lease.
    auto held = engine.hold({.keys = "copy", .holder = "worker-7", .ttl = 30s, .wait = 10s});
    if (!held) {
      std::printf("not now: %s\n", lockd::describe(held.outcome).data());
      return 1;
    }
    for (int piece = 1; piece <= 3; ++piece) {
      // Before everything that cannot be undone: is it still ours?
      if (!held->is_held()) {
        std::printf("lost: %s\n", lockd::describe(*held->loss()).data());
        return 1;
      }
      std::printf("piece %d under fence %llu\n", piece,
                  static_cast<unsigned long long>(held->fence()));
    }
  }  // released
  std::printf("afterwards it is %s\n", engine.fence("copy")->held ? "held" : "free");
}
