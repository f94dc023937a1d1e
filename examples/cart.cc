// Three seats beside each other for one cart: all of them or none.
#include <chrono>
#include <cstdio>

#include "lockd/engine.h"

using namespace std::chrono_literals;

int main() {
  lockd::Engine engine({.shards = 16});
  const auto seats = [](const char* cart) {
    return lockd::AcquireSetRequest{
        .keys = {"seat-12", "seat-13", "seat-14"}, .holder = cart, .ttl = 30s};
  };

  // One seat is somebody else's, so that none of the three is taken.
  auto single = engine.acquire({.key = "seat-13", .holder = "cart-7", .ttl = 30s});
  auto refused = engine.acquire_all(seats("cart-8"));
  for (const auto& in_the_way : refused.conflicts) {
    std::printf("%s is held by %s\n", seats("cart-8").keys[in_the_way.item].key.data(),
                in_the_way.conflict.holder.c_str());
  }
  std::printf("seat-12 is %s\n", engine.fence("seat-12")->held ? "held" : "free");

  // Now all three at once, under one fence and one lease.
  engine.release({.key = "seat-13", .holder = "cart-7", .fence = single->fence});
  auto cart = engine.acquire_all(seats("cart-8"));
  std::printf("cart-8: %s\n", lockd::describe(cart.outcome).data());

  // Each is a hold like any other: one of them can be given back alone.
  engine.release({.key = "seat-12", .holder = "cart-8", .fence = cart->fence});
  auto rest = engine.release_all(
      {.keys = {"seat-12", "seat-13", "seat-14"}, .holder = "cart-8", .fence = cart->fence});
  for (const bool released : rest.released) std::printf("%s ", released ? "released" : "gone");
  std::printf("\n");
}
