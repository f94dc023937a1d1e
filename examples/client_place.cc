// Two permits for three workers: a semaphore, and a place in its queue.
#include <chrono>
#include <cstdio>

#include "lockd/client/client.h"

using namespace std::chrono_literals;
using namespace lockd::client;

int main(int count, char** arguments) {
  const auto address = Address::parse(count > 1 ? arguments[1] : "127.0.0.1");
  if (!address) return 2;
  Client client({.servers = {*address}});

  const LockRequest permit{.keys = lockd::semaphore("printers", 2)};
  auto first = client.acquire(permit);
  auto second = client.acquire(permit);
  std::printf("first: %s, second: %s\n", describe(first).c_str(), describe(second).c_str());

  // Joins the queue now, and waits later: meanwhile there is something else to do.
  auto place = client.enqueue(permit);
  if (!place) return 1;
  std::printf("third: %s\n", place->is_granted() ? "granted" : "queued");

  first->release();
  auto third = place->wait(10s);
  std::printf("third: %s\n", describe(third).c_str());
}
