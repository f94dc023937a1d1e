// A pool of eight cores, of which a job takes as many as it is going to use.
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "lockd/client/client.h"

using namespace std::chrono_literals;
using namespace lockd::client;

LockRequest cores(std::uint32_t permits) {
  return {.keys = lockd::semaphore("cores", 8, permits), .lease = 30s};
}

int main(int count, char** arguments) {
  const auto address = Address::parse(count > 1 ? arguments[1] : "127.0.0.1");
  if (!address) return 2;
  Client client({.servers = {*address}});

  auto compile = client.acquire(cores(4));
  auto archive = client.acquire(cores(1));
  std::printf("four: %s, one: %s\n", describe(compile).c_str(), describe(archive).c_str());

  // Three are left. A large job waits for the fourth, and small ones do not overtake it.
  auto link = client.enqueue(cores(4));
  if (!link) return 1;
  std::printf("four more: %s\n", link->is_granted() ? "granted" : "queued");
  std::printf("one more: %s\n", describe(client.acquire(cores(1))).c_str());

  archive->release();
  std::printf("four more: %s\n", describe(link->wait(10s)).c_str());
}
