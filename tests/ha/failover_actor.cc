// A program that holds a lock of a cluster: says that it has it, holds it until a line comes in,
// and says how it went.
//
//   failover_actor KEY LEASE_S HOST:PORT...
//
//   held FENCE                     once it has it
//   lost REASON                    when it is lost meanwhile
//   released OUTCOME               at the end; the status is 0 when that is `done`
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lockd/client/client.h"

using namespace lockd::client;

int main(int count, char** arguments) {
  ClientOptions options;
  for (int i = 3; i < count; ++i) {
    const auto address = Address::parse(arguments[i]);
    if (!address) return 2;
    options.cluster.push_back(*address);
  }
  if (options.cluster.empty()) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Client client(options);
  auto lock = client.acquire({.keys = arguments[1],
                              .wait = std::chrono::seconds(60),
                              .lease = std::chrono::seconds(std::atoi(arguments[2])),
                              .on_lost = [](const Status& status) {
                                std::printf("lost %s\n", describe(status).c_str());
                              }});
  if (!lock) {
    std::printf("refused %s\n", describe(lock).c_str());
    return 1;
  }
  std::printf("held %llu\n", static_cast<unsigned long long>(lock->fence()));
  for (int c = 0; c != '\n' && c != EOF;) c = std::getchar();
  const Status released = lock->release();
  std::printf("released %s\n", describe(released).c_str());
  return released ? 0 : 1;
}
