// Reserves a diamond, and still has it reserved after a restart.
//
// usage: durable_reservation DIRECTORY
#include <chrono>
#include <cstdio>
#include <string_view>

#include "lockd/engine.h"
#include "lockd/file_journal.h"

using namespace std::chrono_literals;

namespace {

// One run of the program: it finds what the last one left in the directory.
void run(const char* directory) {
  const auto journal = lockd::FileJournal::open({
      .directory = directory,
      .log =
          [](std::string_view line) {
            std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
          },
  });
  lockd::Engine engine({.clock = &journal->clock(), .journal = journal.get()});

  // The same name asking again gets its own grant back: after a restart as before it.
  const auto grant = engine.acquire({.keys = "stone-42", .holder = "cart-7", .ttl = 30s});
  if (!grant) {
    std::printf("not reserved: %s\n", lockd::describe(grant.outcome).data());
    return;
  }
  std::printf("stone-42 is reserved for cart-7 under fence %llu\n",
              static_cast<unsigned long long>(grant->fence));
  const auto refused = engine.acquire({.keys = "stone-42", .holder = "cart-8", .ttl = 30s});
  std::printf("cart-8: %s: %s\n", lockd::describe(refused.outcome).data(),
              refused.conflicts.front().holder.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: durable_reservation DIRECTORY\n");
    return 2;
  }
  try {
    run(argv[1]);
    run(argv[1]);
  } catch (const lockd::JournalError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
