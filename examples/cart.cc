// Three seats beside each other for one cart: all of them or none.
#include <chrono>
#include <cstdio>
#include <vector>

#include "lockd/engine.h"

using namespace std::chrono_literals;

int main() {
  lockd::Engine engine({.shards = 16});
  const std::vector<lockd::KeyItem> seats{"seat-12", "seat-13", "seat-14"};

  // One seat is somebody else's, so that none of the three is taken.
  auto single = engine.acquire({.keys = "seat-13", .holder = "cart-7", .ttl = 30s});
  auto refused = engine.acquire({.keys = seats, .holder = "cart-8", .ttl = 30s});
  for (const auto& conflict : refused.conflicts) {
    std::printf("%s is held by %s\n", seats[conflict.item].key.data(), conflict.holder.c_str());
  }
  std::printf("seat-12 is %s\n", engine.fence("seat-12")->held ? "held" : "free");

  // Now all three at once, under one fence and one lease.
  engine.release({.keys = "seat-13", .holder = "cart-7", .fence = single->fence});
  auto cart = engine.acquire({.keys = seats, .holder = "cart-8", .ttl = 30s});
  std::printf("cart-8: %s\n", lockd::describe(cart.outcome).data());

  // Each is a hold like any other: one of them can be given back alone.
  engine.release({.keys = "seat-12", .holder = "cart-8", .fence = cart->fence});
  auto rest = engine.release({.keys = seats, .holder = "cart-8", .fence = cart->fence});
  for (std::size_t i = 0; i < seats.size(); ++i) {
    std::printf("%s ", rest.has_released(i) ? "released" : "gone");
  }
  std::printf("\n");
}
