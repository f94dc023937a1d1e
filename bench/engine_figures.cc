// Stats that are not times per call: memory, how late leases end, and what happens to large keys.
//
// Run by `make bench`; what the stats mean is in docs/performance.md.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "core/lock_table.h"
#include "lockd/batch.h"
#include "lockd/engine.h"
#include "record.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Millis = std::chrono::duration<double, std::milli>;
using Micros = std::chrono::duration<double, std::micro>;

std::string key_of(std::uint64_t i) {
  char text[17];
  std::snprintf(text, sizeof text, "key-%012llu", static_cast<unsigned long long>(i));
  return text;
}

std::size_t heap_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

class Ignore final : public Listener {
  void on_wait_done(const WaitResult&) noexcept override {}
};

class Stopwatch {
 public:
  Duration elapsed() const { return std::chrono::steady_clock::now() - start_; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

template <typename Operation>
Duration time(Operation operation) {
  const Stopwatch watch;
  operation();
  return watch.elapsed();
}

struct Percentiles {
  explicit Percentiles(std::vector<Duration> samples) {
    std::sort(samples.begin(), samples.end());
    const auto at = [&](double p) {
      return samples[static_cast<std::size_t>(p * static_cast<double>(samples.size() - 1))];
    };
    min = at(0), p50 = at(0.5), p99 = at(0.99), max = at(1);
  }
  Duration min, p50, p99, max;
};

// Memory.

void memory(std::uint64_t keys) {
  Ignore ignore;
  auto engine = std::make_unique<Engine>(EngineOptions{.keys_max = keys});
  const std::size_t empty = heap_in_use();
  Batch batch(*engine);
  for (std::uint64_t i = 0; i < keys; ++i) {
    batch.acquire({.keys = key_of(i), .holder = "holder-1", .ttl = 3600s});
  }
  const std::size_t held = heap_in_use();
  for (std::uint64_t i = 0; i < keys; ++i) {
    batch.acquire({.keys = key_of(i), .holder = "holder-2", .ttl = 3600s, .wait = 3600s}, &ignore,
                  i);
  }
  const std::size_t waited_for = heap_in_use();
  const auto each = [&](std::size_t before, std::size_t after) {
    return static_cast<double>(after - before) / static_cast<double>(keys);
  };
  bench::record(
      "engine_memory",
      {{"keys", keys}, {"key_bytes", each(empty, held)}, {"waiter_bytes", each(held, waited_for)}});
  std::printf("memory, %llu keys of 16 bytes, holders of 8: %.0f bytes a held key, %.0f a waiter\n",
              static_cast<unsigned long long>(keys), each(empty, held), each(held, waited_for));
  batch.commit();
  engine->close();
}

// How late a lease ends: from its deadline to the moment the next in the queue is told.

class LagRecorder final : public Listener {
 public:
  explicit LagRecorder(Engine& engine) : engine_(engine) {}

  void expect(std::uint64_t id, Time deadline) {
    if (deadlines_.size() <= id) deadlines_.resize(id + 1);
    deadlines_[id] = deadline;
  }
  std::vector<Duration> wait_for(std::size_t count) {
    while (told_.load() < count) std::this_thread::sleep_for(1ms);
    MutexLock lock(mutex_);
    return lags_;
  }

 private:
  void on_wait_done(const WaitResult& result) noexcept override {
    const Duration lag = engine_.now() - deadlines_[result.id];
    {
      MutexLock lock(mutex_);
      lags_.push_back(lag);
    }
    ++told_;
  }

  Engine& engine_;
  std::vector<Time> deadlines_;  // all written before the first falls due
  std::atomic<std::size_t> told_{0};
  Mutex mutex_;
  std::vector<Duration> lags_ GUARDED_BY(mutex_);
};

void expiry_lag(const char* what, std::uint64_t leases, Duration first, Duration spread) {
  Engine engine({.keys_max = leases});
  LagRecorder recorder(engine);
  Batch batch(engine);
  for (std::uint64_t i = 0; i < leases; ++i) {
    const std::string key = key_of(i);
    const Duration ttl =
        first + spread * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(leases);
    const Answer held = batch.acquire({.keys = key, .holder = "a", .ttl = ttl});
    recorder.expect(i, held.grant.expires_at);
  }
  for (std::uint64_t i = 0; i < leases; ++i) {
    batch.acquire({.keys = key_of(i), .holder = "b", .ttl = 3600s, .wait = 3600s}, &recorder, i);
  }
  const Percentiles lag(recorder.wait_for(leases));
  if (lag.min < Duration::zero()) {
    std::printf("a lease ended early, by %lld ns\n", -static_cast<long long>(lag.min.count()));
    std::exit(EXIT_FAILURE);
  }
  bench::record("expiry_lag", {{"where", "engine"},
                               {"leases", leases},
                               {"p50_ms", Millis(lag.p50).count()},
                               {"p99_ms", Millis(lag.p99).count()},
                               {"max_ms", Millis(lag.max).count()}});
  std::printf("expiry lag, %s: p50 %.3f ms, p99 %.3f ms, max %.3f ms\n", what,
              Millis(lag.p50).count(), Millis(lag.p99).count(), Millis(lag.max).count());
  engine.close();
}

// What must not depend on how many there are.

void long_line(std::uint64_t waiters) {
  Ignore ignore;
  KeyBudget budget(1);
  LockTable table({}, budget);
  const Time now{1'000'000'000};
  Fence fence = table.acquire(now, {"k", "a", 3600s}, nullptr, 0).grant.fence;
  std::vector<std::uint32_t> slots;
  for (std::uint64_t i = 0; i < waiters; ++i) {
    const Holder holder = Holder::of_secret(i, 1);
    slots.push_back(table.acquire(now, {"k", holder, 3600s, 3600s}, &ignore, i).slot);
  }
  table.effects().clear();
  std::vector<Duration> cancels;
  for (std::uint64_t i = waiters / 4; i < waiters * 3 / 4; ++i) {
    cancels.push_back(time([&] { table.cancel(now, slots[i], &ignore, i); }));
    table.effects().clear();
  }
  std::vector<Duration> releases;
  Holder holder = "a";
  for (std::uint64_t i = 0; i < waiters / 4; ++i) {
    releases.push_back(time([&] { table.release(now, {"k", holder, fence}); }));
    fence = table.effects().wait_results[0].grant.fence;
    holder = Holder::of_secret(table.effects().wait_results[0].id, 1);
    table.effects().clear();
  }
  std::printf(
      "a queue of %7llu: release p50 %5.2f us, p99 %5.2f us; cancel from the middle p50 %5.2f us\n",
      static_cast<unsigned long long>(waiters), Micros(Percentiles(releases).p50).count(),
      Micros(Percentiles(releases).p99).count(), Micros(Percentiles(cancels).p50).count());
}

void large_session(std::uint64_t holds) {
  KeyBudget budget(holds);
  LockTable table({}, budget);
  const Time now{1'000'000'000};
  for (std::uint64_t i = 0; i < holds; ++i) {
    table.acquire(now, {key_of(i), Holder::of_secret(i, 1), 3600s}, nullptr, 0);
  }
  table.effects().clear();
  std::vector<Duration> slices;
  for (bool done = false; !done;) {
    int budget = 256;
    slices.push_back(time([&] { done = table.end_session(now, 1, false, &budget); }));
    table.effects().clear();
  }
  Duration total{};
  for (Duration slice : slices) total += slice;
  std::printf(
      "a session with %7llu holds ends in %.1f ms, %5.2f us a hold; the lock is held for p99 %.3f "
      "ms\n",
      static_cast<unsigned long long>(holds), Millis(total).count(),
      Micros(total).count() / static_cast<double>(holds), Millis(Percentiles(slices).p99).count());
}

void describe_all(std::uint64_t keys) {
  KeyBudget budget(keys);
  LockTable table({}, budget);
  const Time now{1'000'000'000};
  for (std::uint64_t i = 0; i < keys; ++i) {
    table.acquire(now, {key_of(i), "holder-1", 3600s}, nullptr, 0);
    table.effects().clear();
  }
  std::vector<Duration> slices;
  std::vector<Event> events;
  std::size_t described = 0;
  for (Cursor cursor; !cursor.done;) {
    slices.push_back(time([&] { table.describe(cursor, 256, events); }));
    described += events.size();
    events.clear();
  }
  const Percentiles held(slices);
  std::printf(
      "describing %zu keys in slices of 256: the lock is held for p50 %.3f ms, p99 %.3f ms, max "
      "%.3f ms\n",
      described, Millis(held.p50).count(), Millis(held.p99).count(), Millis(held.max).count());
}

}  // namespace
}  // namespace lockd

int main() {
  using namespace lockd;
  memory(1'000'000);
  expiry_lag("1,000 leases, one a millisecond", 1'000, 200ms, 1s);
  expiry_lag("100,000 leases within a second", 100'000, 1s, 1s);
  for (std::uint64_t n : {1'000u, 100'000u}) long_line(n);
  for (std::uint64_t n : {1'000u, 100'000u}) large_session(n);
  describe_all(1'000'000);
}
