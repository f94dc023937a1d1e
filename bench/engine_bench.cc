// What the engine costs: time per call, how it grows with keys and threads, memory per key.
//
// Run by `make bench`; figures and what they mean are in docs/performance.md.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/lock_table.h"
#include "keys.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

using bench::Keys;
using bench::Walk;

void acquire_release(benchmark::State& state) {
  const Keys keys(static_cast<std::size_t>(state.range(0)));
  Engine engine({.keys_max = 20'000'000});
  Walk walk(keys.size(), true);
  for (auto _ : state) {
    const std::string_view key = keys[walk.next()];
    const auto grant = engine.acquire({.keys = key, .holder = "holder-1", .ttl = 30s});
    engine.release({.keys = key, .holder = "holder-1", .fence = grant->fence});
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(acquire_release)->ArgName("keys")->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

void batched_acquire_release(benchmark::State& state) {
  const Keys keys(static_cast<std::size_t>(state.range(0)));
  Engine engine({.keys_max = 20'000'000});
  Walk walk(keys.size(), true);
  Batch batch(engine);
  int in_batch = 0;
  for (auto _ : state) {
    const std::string_view key = keys[walk.next()];
    const Answer answer = batch.acquire({.keys = key, .holder = "holder-1", .ttl = 30s});
    batch.release({.keys = key, .holder = "holder-1", .fence = answer.grant.fence});
    if (++in_batch % 64 == 0) batch.commit();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(batched_acquire_release)->ArgName("keys")->Arg(1'000)->Arg(1'000'000);

void renew(benchmark::State& state) {
  const Keys keys(static_cast<std::size_t>(state.range(0)));
  Engine engine({.keys_max = 20'000'000});
  std::vector<Fence> fences;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    fences.push_back(engine.acquire({.keys = keys[i], .holder = "holder-1", .ttl = 60s})->fence);
  }
  Walk walk(keys.size(), state.range(1) != 0);
  for (auto _ : state) {
    const std::size_t i = walk.next();
    benchmark::DoNotOptimize(
        engine.renew({.keys = keys[i], .holder = "holder-1", .fence = fences[i]}));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(renew)->ArgNames({"leases", "scattered"})->ArgsProduct({{100'000, 1'000'000}, {0, 1}});

// The rules alone: no lock, no clock.
void table_renew(benchmark::State& state) {
  const Keys keys(static_cast<std::size_t>(state.range(0)));
  KeyBudget budget(20'000'000);
  LockTable table({}, budget);
  std::vector<Fence> fences;
  Time now{1'000'000'000};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    fences.push_back(
        table.acquire(now, {.key = keys[i], .holder = "holder-1", .ttl = 60s}, nullptr, 0)
            .grant.fence);
  }
  table.effects().clear();
  Walk walk(keys.size(), state.range(1) != 0);
  for (auto _ : state) {
    const std::size_t i = walk.next();
    now = now + 100ns;
    table.renew(now, {.key = keys[i], .holder = "holder-1", .fence = fences[i]}, {});
    table.effects().clear();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(table_renew)->ArgNames({"leases", "scattered"})->ArgsProduct({{100'000}, {0, 1}});

// Each thread on keys of its own.
void threads_acquire_release(benchmark::State& state) {
  static std::unique_ptr<Engine> engine;
  if (state.thread_index() == 0) engine = std::make_unique<Engine>();
  const Keys keys(2'000);
  const auto thread = static_cast<std::size_t>(state.thread_index());
  Walk walk(1'000, true);
  for (auto _ : state) {
    const std::string_view key = keys[thread * 1'000 + walk.next()];
    const auto grant = engine->acquire({.keys = key, .holder = "holder-1", .ttl = 30s});
    engine->release({.keys = key, .holder = "holder-1", .fence = grant->fence});
  }
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) engine.reset();
}
BENCHMARK(threads_acquire_release)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace lockd

BENCHMARK_MAIN();
