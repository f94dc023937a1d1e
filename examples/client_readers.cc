// A file that many read at once, and that one writes while nobody reads.
#include <chrono>
#include <cstdio>

#include "lockd/client/client.h"

using namespace std::chrono_literals;
using namespace lockd::client;

int main(int count, char** arguments) {
  const auto address = Address::parse(count > 1 ? arguments[1] : "127.0.0.1");
  std::FILE* const prices = std::tmpfile();
  if (!address || prices == nullptr) return 2;
  Client client({.servers = {*address}});
  const LockRequest to_write{.keys = "prices", .wait = 10s};
  const LockRequest to_read{.keys = lockd::shared("prices"), .wait = 10s};

  // Alone: nobody reads what is half written.
  if (auto writer = client.acquire(to_write)) {
    std::fputs("emerald 4200\n", prices);
    std::fflush(prices);
  }

  // Together: each reader has a fence of its own.
  auto reader = client.acquire(to_read);
  auto another = client.acquire(to_read);
  char line[80] = "";
  std::rewind(prices);
  if (reader && another && std::fgets(line, sizeof line, prices) != nullptr) {
    std::printf("two readers: %s", line);
  }

  // A writer waits for both of them; and whoever comes to read from now on waits for the writer.
  auto writer = client.enqueue(to_write);
  if (!writer || writer->is_granted()) return 1;
  const auto late = client.acquire({.keys = lockd::shared("prices")});
  std::printf("a late reader: %s\n", describe(late).c_str());
  reader->release();
  another->release();
  std::printf("the writer: %s\n", describe(writer->wait(10s)).c_str());
  std::fclose(prices);
}
