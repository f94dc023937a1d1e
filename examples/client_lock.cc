// Does a job that only one process may do at a time.
#include <chrono>
#include <cstdio>

#include "lockd/client/client.h"

using namespace std::chrono_literals;
using namespace lockd::client;

int main(int count, char** arguments) {
  const auto address = Address::parse(count > 1 ? arguments[1] : "127.0.0.1");
  if (!address) return 2;
  Client client({.servers = {*address}});

  // Wait in the queue for up to ten seconds. From then on the lock renews itself.
  auto lock = client.acquire({.keys = "my-job", .wait = 10s, .lease = 30s});
  if (!lock) {
    std::printf("not now: %s\n", describe(lock).c_str());
    return 1;
  }
  for (int step = 1; step <= 3; ++step) {
    // Before everything that cannot be undone: is it still ours?
    if (!lock->is_held()) {
      std::printf("lost: %s\n", describe(*lock->loss()).c_str());
      return 1;
    }
    // Whatever is written to gets the fence, and refuses one smaller than it has seen.
    std::printf("step %d under fence %llu\n", step, static_cast<unsigned long long>(lock->fence()));
  }
  // The destructor would do it, too, but could not say how it went.
  std::printf("release: %s\n", describe(lock->release()).c_str());
}
