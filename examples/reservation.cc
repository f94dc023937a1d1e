// Reserves a diamond for a shopping cart.
#include <chrono>
#include <cstdio>

#include "lockd/engine.h"

using namespace std::chrono_literals;

int main() {
  lockd::Engine engine({.shards = 16});

  // Wait in the queue for up to five seconds; hold it for thirty, unless renewed or released.
  auto grant = engine.acquire({.keys = "stone-42", .holder = "cart-7", .ttl = 30s, .wait = 5s});
  if (!grant) {
    std::printf("not reserved: %s\n", lockd::describe(grant.outcome).data());
    return 1;
  }
  const auto fence = static_cast<unsigned long long>(grant->fence);
  std::printf("stone-42 is reserved for cart-7 under fence %llu\n", fence);

  // Somebody else does not get it, and is told who has it.
  auto refused = engine.acquire({.keys = "stone-42", .holder = "cart-8", .ttl = 30s});
  std::printf("cart-8: %s: %s\n", lockd::describe(refused.outcome).data(),
              refused.conflicts.front().holder.c_str());

  // The customer is still looking: thirty more seconds from now.
  if (!engine.renew({.keys = "stone-42", .holder = "cart-7", .fence = grant->fence})) return 1;

  // Whoever writes to the inventory checks this: a cart that slept through its lease has an old
  // one.
  std::printf("the fence in force is %s\n",
              engine.fence("stone-42")->fence == grant->fence ? "cart-7's" : "another's");

  engine.release({.keys = "stone-42", .holder = "cart-7", .fence = grant->fence});
  std::printf("released; %s\n", engine.fence("stone-42")->held ? "held" : "free");
}
