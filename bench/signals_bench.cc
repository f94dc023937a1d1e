// What a signal costs: with and without others listening elsewhere, to one and to many, and from
// two threads at once.
//
// Run by `make bench`; figures and what they mean are in docs/performance.md.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "pubsub/signal_hub.h"
#include "pubsub/subscriptions.h"

namespace lockd {
namespace {

// What a loop's mailbox does at least: it takes a lock of its own and keeps what it is given.
class Inbox final : public Mailbox {
 public:
  void deliver(std::span<const std::uint64_t> subscribers,
               const std::shared_ptr<const Signal>& signal) noexcept override {
    MutexLock lock(mutex_);
    if (names_.size() > 4'096) {
      names_.clear();
      signals_.clear();
    }
    names_.insert(names_.end(), subscribers.begin(), subscribers.end());
    signals_.push_back(signal);
  }
  void on_room() noexcept override {}

 private:
  Mutex mutex_;
  std::vector<std::uint64_t> names_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const Signal>> signals_ GUARDED_BY(mutex_);
};

constexpr std::uint64_t kUnrelated = std::uint64_t{1} << 32;  // their names start here

std::string number(std::int64_t i) { return std::to_string(i); }

// On other channels under the same first token, every tenth with a wildcard.
std::string unrelated_pattern(std::int64_t i) {
  return "bench." + number(i % 1'000) + (i % 10 == 0 ? ".*.q" : ".p.q") + number(i);
}

// Two loops, and `listeners` of one channel spread over them.
struct Server {
  Server(std::int64_t listeners, std::int64_t unrelated) {
    const std::uint8_t numbers[] = {hub.attach(inboxes[0]), hub.attach(inboxes[1])};
    for (std::int64_t i = 0; i < unrelated; ++i) {
      hub.listen({numbers[i % 2], kUnrelated + static_cast<std::uint64_t>(i)}, unrelated_pattern(i),
                 "");
    }
    for (std::int64_t i = 0; i < listeners; ++i) {
      hub.listen({numbers[i % 2], static_cast<std::uint64_t>(i)}, "bench.price.eur", "");
    }
  }

  std::size_t publish(std::string_view channel, std::string_view payload) {
    return hub.publish(channel, payload)->reached;
  }

  Inbox inboxes[2];
  SignalHub hub;
};

void publish(benchmark::State& state) {
  static std::unique_ptr<Server> server;
  if (state.thread_index() == 0) {
    server = std::make_unique<Server>(state.range(0), state.range(1));
  }
  std::size_t reached = 0;
  for (auto _ : state) reached = server->publish("bench.price.eur", "{\"bid\":1.0842}");
  if (reached != static_cast<std::size_t>(state.range(0))) state.SkipWithError("lost listeners");
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) server.reset();
}
BENCHMARK(publish)
    ->ArgNames({"listeners", "unrelated"})
    ->ArgsProduct({{0, 1, 100}, {0, 100'000}})
    ->UseRealTime();
BENCHMARK(publish)
    ->ArgNames({"listeners", "unrelated"})
    ->ArgsProduct({{0, 1, 100}, {0}})
    ->Threads(2)
    ->UseRealTime();

// What happens under the hub's lock.
void match(benchmark::State& state) {
  Subscriptions subscriptions;
  for (std::int64_t i = 0; i < state.range(1); ++i) {
    subscriptions.add(kUnrelated + static_cast<std::uint64_t>(i), unrelated_pattern(i), "");
  }
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    subscriptions.add(static_cast<std::uint64_t>(i), "bench.price.eur",
                      state.range(2) != 0 ? "group" : "");
  }
  std::vector<SubscriberId> out;
  for (auto _ : state) {
    out.clear();
    subscriptions.begin_match("bench.price.eur");
    subscriptions.match_some(SIZE_MAX, out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(match)
    ->ArgNames({"listeners", "unrelated", "grouped"})
    ->ArgsProduct({{0, 1, 100, 100'000}, {0, 100'000}, {0}})
    ->ArgsProduct({{1, 100, 100'000}, {0}, {1}});

// A connection that listens to one channel and closes.
void listen_drop(benchmark::State& state) {
  Server server(0, state.range(0));
  std::uint64_t name = 0;
  for (auto _ : state) {
    ++name;
    server.hub.listen({0, name}, "bench.price." + number(static_cast<std::int64_t>(name)), "");
    server.hub.drop({0, name});
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(listen_drop)->ArgName("unrelated")->Arg(0)->Arg(100'000);

}  // namespace
}  // namespace lockd

BENCHMARK_MAIN();
