// The parts that docs/embedding.md shows: a fenced store, a journal, a wait without an end, an
// observer.
//
// usage: embedding_parts DIRECTORY
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "lockd/engine.h"
#include "lockd/file_journal.h"
#include "lockd/observer.h"

using namespace std::chrono_literals;

namespace {

// What a lock protects: it refuses a fence smaller than the largest it has seen.
class Store {
 public:
  bool write(const std::string& stone, const std::string& data, lockd::Fence fence) {
    Row& row = rows_[stone];
    if (fence < row.fence) return false;
    row = {data, fence};
    return true;
  }

 private:
  struct Row {
    std::string data{};
    lockd::Fence fence = 0;
  };
  std::map<std::string, Row> rows_;
};

class Watcher final : public lockd::Observer {
 public:
  void on_key_events(std::span<const lockd::KeyEvent> all, lockd::Position) noexcept override {
    const std::lock_guard lock(mutex_);
    for (const lockd::KeyEvent& one : all) {
      if (one.type == lockd::KeyEvent::Type::granted) ++grants_;
    }
  }
  int grants() {
    const std::lock_guard lock(mutex_);
    return grants_;
  }

 private:
  std::mutex mutex_;  // shards call at the same time
  int grants_ = 0;
};

void keep(const std::string& directory) {
  Store store;
  const auto journal = lockd::FileJournal::open({.directory = directory});
  lockd::Engine engine({.clock = &journal->clock(), .journal = journal.get()});

  const auto first = engine.acquire({.keys = "stone-42", .holder = "cart-7", .ttl = 30s});
  if (first) engine.release({.keys = "stone-42", .holder = "cart-7", .fence = first->fence});
  const auto second = engine.acquire({.keys = "stone-42", .holder = "cart-8", .ttl = 30s});
  if (!first || !second) return;

  const bool kept = store.write("stone-42", "sold to cart-8", second->fence);
  const bool late = store.write("stone-42", "sold to cart-7", first->fence);
  std::printf("cart-8: %s, cart-7: %s\n", kept ? "kept" : "refused", late ? "kept" : "refused");
  engine.release({.keys = "stone-42", .holder = "cart-8", .fence = second->fence});
}

// Somebody has it: the caller waits until it is free, however long that takes.
void wait_for_turn(lockd::Engine& engine, std::stop_token stop) {
  const auto grant = engine.acquire(
      {.keys = "oven", .holder = "baker", .ttl = 30s, .wait = lockd::kDurationMax}, stop);
  std::printf("baker: %s\n", lockd::describe(grant.outcome).data());
}

void wait() {
  lockd::Engine engine;
  const auto first = engine.acquire({.keys = "oven", .holder = "cook", .ttl = 30s});
  std::jthread baker([&engine](std::stop_token stop) { wait_for_turn(engine, std::move(stop)); });
  engine.release({.keys = "oven", .holder = "cook", .fence = first->fence});
  baker.join();
}

void watch() {
  Watcher watcher;
  lockd::Engine engine({.observer = &watcher});
  watcher.observe(true);  // until then, nothing is collected

  const auto grant = engine.acquire({.keys = "stone-42", .holder = "cart-7", .ttl = 30s});
  if (grant) std::printf("grants: %d\n", watcher.grants());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  keep(arguments[1]);
  wait();
  watch();
}
