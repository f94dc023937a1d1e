// A process that holds locks, so that a test can stop it.
//
//   actor hold PORT                         holds one lock until it is lost
//   actor write PORT DESCRIPTOR SEED        updates the store in a file descriptor, under a lock
#include <signal.h>
#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "client/fenced_store.h"
#include "lockd/client/client.h"

namespace {

using namespace lockd::client;
using namespace std::chrono_literals;

ClientOptions options(const char* port) {
  return {.servers = {{"127.0.0.1", static_cast<std::uint16_t>(std::atoi(port))}},
          .connect = {.connect_timeout = 60s, .reply_timeout = 60s}};
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Says `held`; then, when it is over, when is_held() was last asked and answered yes, and how the
// callback and the stop token told it.
int hold(Client& client) {
  std::atomic<Outcome> told = Outcome::ok;
  auto lock =
      client.acquire({.keys = "k", .wait = 60s, .lease = 5s, .on_lost = [&](const Status& how) {
                        told = how.outcome;
                      }});
  if (!lock) return 1;
  say("held");
  BootClock::time_point last_held;
  for (;;) {
    const auto asked = BootClock::now();
    if (!lock->is_held()) break;
    last_held = asked;
    std::this_thread::sleep_for(1ms);
  }
  say("last held " + std::to_string(last_held.time_since_epoch().count()));
  while (told == Outcome::ok || !lock->lost().stop_requested()) std::this_thread::sleep_for(1ms);
  say("told " + std::string(describe(told)));
  return 0;
}

// One update of the store: read, think, write. It asks whether it still holds the lock, as
// everybody should, and is stopped right after it has heard yes, as anybody may be.
bool update(Client& client, FencedStore& store, bool is_stopped) {
  const auto lock = client.acquire({.keys = "k", .wait = 600s, .lease = 1s});
  if (!lock) return false;
  const auto value = store.read(lock->fence());
  if (!value || !lock->is_held()) return false;
  if (is_stopped) ::raise(SIGSTOP);
  return store.write(lock->fence(), *value + 1);
}

int write(Client& client, FencedStore& store, unsigned seed) {
  constexpr int kUpdates = 60;
  constexpr std::size_t kStops = 3;
  std::minstd_rand random(seed);
  std::set<int> stops;
  while (stops.size() < kStops) stops.insert(static_cast<int>((random() >> 8) % kUpdates));
  for (int i = 0; i < kUpdates; ++i) {
    if (update(client, store, stops.contains(i))) ++store.confirmed;
    std::this_thread::sleep_for(std::chrono::microseconds((random() >> 8) % 3000));
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that dies leaves nobody behind
  const std::string role = count > 2 ? arguments[1] : "";
  if (role == "hold") {
    Client client(options(arguments[2]));
    return hold(client);
  }
  if (role == "write" && count == 5) {
    Client client(options(arguments[2]));
    FencedStore* const store = FencedStore::map(std::atoi(arguments[3]));
    return write(client, *store, static_cast<unsigned>(std::atoi(arguments[4])));
  }
  std::fprintf(stderr, "usage: actor hold PORT | actor write PORT DESCRIPTOR SEED\n");
  return 2;
}
