// Holds locks and renews them: the client for C++, to be measured by bench/clients/renewals.
//
//   hold_locks HOST:PORT LOCKS LEASE_S
//
// Says `held` when it has all, holds them until a line comes in, and says how many it has then.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "lockd/client/client.h"

using namespace lockd::client;

int main(int count, char** arguments) {
  const auto address = count == 4 ? Address::parse(arguments[1]) : std::nullopt;
  if (!address) return 2;
  Client client({.servers = {*address}});
  std::vector<HeldLock> held;
  for (int i = 0; i < std::atoi(arguments[2]); ++i) {
    const std::string key = std::to_string(getpid()) + "/" + std::to_string(i);
    auto lock =
        client.acquire({.keys = key, .lease = std::chrono::seconds(std::atoi(arguments[3]))});
    if (!lock) return 1;
    held.push_back(std::move(*lock));
  }
  std::puts("held");
  std::fflush(stdout);
  for (int c = 0; c != '\n' && c != EOF;) c = std::getchar();
  std::printf("%td\n", std::ranges::count_if(held, &HeldLock::is_held));
}
