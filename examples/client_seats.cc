// Three seats beside each other: all of them or none.
#include <chrono>
#include <cstdio>
#include <vector>

#include "lockd/client/client.h"

using namespace std::chrono_literals;
using namespace lockd::client;

int main(int count, char** arguments) {
  const auto address = Address::parse(count > 1 ? arguments[1] : "127.0.0.1");
  if (!address) return 2;
  Client client({.servers = {*address}, .connect = {.name = "box office"}});
  const std::vector<lockd::KeyItem> keys{"seat-12", "seat-13", "seat-14"};
  const LockRequest seats{.keys = keys, .lease = 30s};

  // Somebody has the one in the middle, so that none of the three is taken.
  auto single = client.acquire({.keys = "seat-13", .lease = 30s});
  std::printf("three: %s\n", client.acquire(seats) ? "held" : "not now");
  std::printf("the first: %s\n", describe(client.acquire({.keys = "seat-12"})).c_str());

  // Now all at once, under one fence. They renew themselves, and are lost and released together.
  single->release();
  auto cart = client.acquire(seats);
  if (!cart) return 1;
  std::printf("%zu seats under fence %llu\n", cart->keys().size(),
              static_cast<unsigned long long>(cart->fence()));
  std::printf("release: %s\n", describe(cart->release()).c_str());
}
