// Listens to what happens to orders, and says that something has.
#include <chrono>
#include <cstdio>

#include "lockd/client/connection.h"

using namespace std::chrono_literals;
using namespace lockd::client;

int main(int count, char** arguments) {
  const auto address = Address::parse(count > 1 ? arguments[1] : "127.0.0.1");
  if (!address) return 2;
  auto listener = Connection::open(*address);
  auto publisher = Connection::open(*address);
  if (!listener || !publisher) {
    std::printf("%s\n", describe(listener ? publisher : listener).c_str());
    return 1;
  }

  listener->listen("orders.>");
  const auto reached = publisher->publish("orders.42", "ready");
  std::printf("reached %llu\n", static_cast<unsigned long long>(*reached));

  // Signals that came during other calls are waiting here.
  const auto signal = listener->next_signal(10s);
  if (!signal) return 1;
  std::printf("%s: %s\n", signal->channel.c_str(), signal->payload.c_str());
}
