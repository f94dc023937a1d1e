// What it costs to share a lock, and to take several keys in one step.
//
// Run by `make bench`; see docs/performance.md. On the engine, without a journal: what is measured
// are the rules and the shards' locks. Each figure stands beside what one would do without, in the
// same run, taken in turns.
//
//   sharing_bench [SECONDS], for what is measured over time
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "keys.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd::bench {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;
using Nanos = std::chrono::duration<double, std::nano>;
using Micros = std::chrono::duration<double, std::micro>;

constexpr Duration kLease = 600s;
constexpr int kRounds = 11;
constexpr std::array<std::size_t, 3> kSizes{2, 8, 64};

void require(bool good) {
  if (!good) throw std::runtime_error("a refusal");
}

double seconds_of(const std::function<void()>& work) {
  const SteadyClock::time_point start = SteadyClock::now();
  work();
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// The median of both, measured in turns.
struct Pair {
  double one;
  double other;
};

Pair in_turns(const std::function<void()>& one, const std::function<void()>& other) {
  std::vector<double> ones;
  std::vector<double> others;
  for (int round = 0; round < kRounds; ++round) {
    ones.push_back(seconds_of(one));
    others.push_back(seconds_of(other));
  }
  std::ranges::sort(ones);
  std::ranges::sort(others);
  return {ones[kRounds / 2], others[kRounds / 2]};
}

class Counter final : public Listener {
 public:
  Counter() : Listener(Delivery::at_commit) {}
  void on_wait_done(const WaitResult& result) noexcept override {
    granted_ += result.outcome == Outcome::ok ? 1 : 0;
    last_ = result.grant.fence;
  }
  std::size_t granted() const { return granted_; }
  Fence last() const { return last_; }

 private:
  std::size_t granted_ = 0;
  Fence last_ = 0;
};

// All take it, then all release it, as one batch.
void come_and_go(Engine& engine, const Keys& keys, const Keys& names, Mode mode) {
  std::vector<Fence> fences;
  Batch batch(engine);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Answer answer = batch.acquire({.keys = KeyItem(keys[i % keys.size()], Kind::lock, mode),
                                         .holder = names[i],
                                         .ttl = kLease});
    require(answer.outcome == Outcome::ok);
    fences.push_back(answer.grant.fence);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    require(batch.release({keys[i % keys.size()], names[i], fences[i]}).outcome == Outcome::ok);
  }
}

void measure_readers() {
  constexpr std::size_t kReaders = 10'000;
  Engine engine;
  const Keys names(kReaders);
  const Keys one_key(1);
  const Keys many_keys(kReaders);
  const Pair pair = in_turns([&] { come_and_go(engine, one_key, names, Mode::shared); },
                             [&] { come_and_go(engine, many_keys, names, Mode::exclusive); });
  std::printf(
      "%zu readers take one key, then release it: %.0f ns each;"
      " %zu locks of their own: %.0f ns (%.2f)\n",
      kReaders, pair.one / kReaders * 1e9, kReaders, pair.other / kReaders * 1e9,
      pair.one / pair.other);
}

// A writer behind so many readers, and as many readers behind it.
void measure_writer() {
  constexpr std::size_t kReaders = 1'000;
  std::vector<double> writer_us;
  std::vector<double> readers_us;
  for (int round = 0; round < kRounds; ++round) {
    Engine engine({.sweeper = false});
    const Keys names(2 * kReaders);
    std::vector<Fence> fences;
    Counter writers;
    Counter readers;
    Batch batch(engine);
    for (std::size_t i = 0; i < kReaders; ++i) {
      const AcquireRequest reader{.keys = shared("page"), .holder = names[i], .ttl = kLease};
      fences.push_back(batch.acquire(reader).grant.fence);
    }
    batch.acquire({.keys = "page", .holder = "writer", .ttl = kLease, .wait = kLease}, &writers);
    for (std::size_t i = kReaders; i < 2 * kReaders; ++i) {
      const AcquireRequest reader{
          .keys = shared("page"), .holder = names[i], .ttl = kLease, .wait = kLease};
      batch.acquire(reader, &readers, i);
    }
    writer_us.push_back(1e6 * seconds_of([&] {
                          for (std::size_t i = 0; i < kReaders; ++i)
                            batch.release({"page", names[i], fences[i]});
                          batch.commit();
                        }));
    require(writers.granted() == 1);
    readers_us.push_back(1e6 * seconds_of([&] {
                           batch.release({"page", "writer", writers.last()});
                           batch.commit();
                         }));
    require(readers.granted() == kReaders);
  }
  std::ranges::sort(writer_us);
  std::ranges::sort(readers_us);
  std::printf(
      "a writer behind %zu readers is granted within the call that releases the last; all"
      " their releases take %.0f us\n",
      kReaders, writer_us[kRounds / 2]);
  std::printf("its release lets %zu readers behind it in, in one call of %.0f us\n", kReaders,
              readers_us[kRounds / 2]);
}

std::vector<KeyItem> items_of(const Keys& keys, const std::vector<std::size_t>& which) {
  std::vector<KeyItem> items;
  for (const std::size_t i : which) items.emplace_back(keys[i]);
  return items;
}

void measure_free_sets(std::size_t size) {
  constexpr std::size_t kSets = 2'000;
  Engine engine;
  const Keys keys(64 * 1024);
  Walk walk(keys.size(), true);
  std::vector<std::vector<KeyItem>> sets;
  for (std::size_t i = 0; i < kSets; ++i) {
    std::vector<std::size_t> which;
    for (std::size_t k = 0; k < size; ++k) which.push_back(walk.next());
    sets.push_back(items_of(keys, which));
  }
  const Pair pair = in_turns(
      [&] {
        for (const std::vector<KeyItem>& set : sets) {
          Batch batch(engine);
          const Answer answer = batch.acquire({.keys = set, .holder = "h", .ttl = kLease});
          require(answer.outcome == Outcome::ok);
          batch.release({set, "h", answer.grant.fence});
        }
      },
      [&] {
        std::array<Fence, kKeysPerSetMax> fences;
        for (const std::vector<KeyItem>& set : sets) {
          Batch batch(engine);
          for (std::size_t k = 0; k < set.size(); ++k) {
            const Answer answer = batch.acquire({.keys = set[k].key, .holder = "h", .ttl = kLease});
            require(answer.outcome == Outcome::ok);
            fences[k] = answer.grant.fence;
          }
          for (std::size_t k = 0; k < set.size(); ++k) {
            batch.release({set[k].key, "h", fences[k]});
          }
        }
      });
  std::printf("a set of %2zu that is free: %6.2f us; its keys one by one: %6.2f us (%.2f)\n", size,
              pair.one / kSets * 1e6, pair.other / kSets * 1e6, pair.one / pair.other);
}

// Threads that take random sets of a few keys, and hold them for nothing.
class Contention {
 public:
  Contention(std::size_t size, std::size_t keys, bool one_by_one)
      : size_(size), keys_(keys), one_by_one_(one_by_one) {}

  struct Result {
    std::uint64_t sets = 0;
    Duration longest_wait{};
    std::vector<std::uint64_t> of_each{};
  };
  Result run(std::size_t threads, double seconds) {
    std::vector<Result> results(threads);
    {
      std::vector<std::jthread> all;
      for (std::size_t i = 0; i < threads; ++i) {
        all.emplace_back([this, i, seconds, &results] { work(i, seconds, results[i]); });
      }
    }
    Result sum;
    for (const Result& one : results) {
      sum.sets += one.sets;
      sum.of_each.push_back(one.sets);
      sum.longest_wait = std::max(sum.longest_wait, one.longest_wait);
    }
    return sum;
  }

 private:
  void work(std::size_t thread, double seconds, Result& result) {
    std::mt19937 random(static_cast<unsigned>(thread));
    const std::string name = "t" + std::to_string(thread);
    std::vector<std::size_t> all(keys_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    const auto until = SteadyClock::now() + std::chrono::duration<double>(seconds);
    while (SteadyClock::now() < until) {
      std::ranges::shuffle(all, random);
      std::vector<std::size_t> which(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size_));
      const SteadyClock::time_point asked = SteadyClock::now();
      one_by_one_ ? take_one_by_one(std::move(which), name) : take_all(which, name);
      result.longest_wait = std::max<Duration>(result.longest_wait, SteadyClock::now() - asked);
      ++result.sets;
    }
  }
  void take_all(const std::vector<std::size_t>& which, const std::string& name) {
    const std::vector<KeyItem> items = items_of(keys_, which);
    const AcquireResult set =
        engine_.acquire({.keys = items, .holder = name, .ttl = kLease, .wait = kLease});
    require(set.outcome == Outcome::ok);
    engine_.release({items, name, set->fence});
  }
  // In one order: in any other they would soon wait for each other for ever.
  void take_one_by_one(std::vector<std::size_t> which, const std::string& name) {
    std::ranges::sort(which);
    std::vector<Fence> fences;
    for (const std::size_t i : which) {
      const AcquireResult grant =
          engine_.acquire({.keys = keys_[i], .holder = name, .ttl = kLease, .wait = kLease});
      require(grant.outcome == Outcome::ok);
      fences.push_back(grant->fence);
    }
    for (std::size_t k = 0; k < which.size(); ++k) {
      engine_.release({keys_[which[k]], name, fences[k]});
    }
  }

  const std::size_t size_;
  const Keys keys_;
  const bool one_by_one_;
  Engine engine_;
};

void measure_contended_sets(std::size_t size, double seconds) {
  constexpr std::size_t kThreads = 4;
  const std::size_t keys = 2 * size;
  std::array<double, 2> rate{};
  for (int round = 0; round < 3; ++round) {
    for (const bool one_by_one : {false, true}) {
      const auto result = Contention(size, keys, one_by_one).run(kThreads, seconds / 3);
      rate[one_by_one ? 1 : 0] += static_cast<double>(result.sets) / seconds;
    }
  }
  std::printf(
      "%zu threads, sets of %2zu of %3zu keys: %8.0f a second; one by one, in order:"
      " %8.0f (%.2f)\n",
      kThreads, size, keys, rate[0], rate[1], rate[0] / rate[1]);
}

void measure_overlap(double seconds) {
  const auto result = Contention(3, 4, false).run(2, seconds);
  std::printf(
      "two threads whose sets of 3 of 4 keys overlap, for %.0f s: %llu and %llu sets, the"
      " longest wait %.1f ms\n",
      seconds, static_cast<unsigned long long>(result.of_each[0]),
      static_cast<unsigned long long>(result.of_each[1]),
      std::chrono::duration<double, std::milli>(result.longest_wait).count());
}

}  // namespace
}  // namespace lockd::bench

int main(int argc, char** argv) {
  using namespace lockd::bench;
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 3;
  measure_readers();
  measure_writer();
  for (const std::size_t size : kSizes) measure_free_sets(size);
  for (const std::size_t size : kSizes) measure_contended_sets(size, seconds);
  measure_overlap(10);
}
