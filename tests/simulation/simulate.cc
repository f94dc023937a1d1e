// Simulates worlds, one seed after the other, on as many threads as it is told.
//
//   simulate --seeds 1000 --operations 50000     seeds 1 to 1000
//   simulate --seconds 3600                      as long as asked, with a line of progress
//   simulate --first 4711 --seeds 1 --trace      one again, step by step
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "crash/violation.h"
#include "simulation/simulation.h"

namespace lockd::simulation {
namespace {

struct Wish {
  std::uint64_t first = 1;
  std::uint64_t seeds = 100;
  std::uint64_t operations = 50'000;
  std::uint64_t seconds = 0;  // 0: as many seeds as asked for
  std::uint64_t jobs = std::max(1U, std::thread::hardware_concurrency());
  bool trace = false;
};

[[noreturn]] void usage() {
  std::cerr << "usage: simulate [--first SEED] [--seeds N] [--operations N] [--seconds N] "
               "[--jobs N] [--trace]\n";
  std::exit(2);
}

Wish parse(int argc, char** argv) {
  Wish wish;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--trace") {
      wish.trace = true;
      continue;
    }
    std::uint64_t* const number = flag == "--first"        ? &wish.first
                                  : flag == "--seeds"      ? &wish.seeds
                                  : flag == "--operations" ? &wish.operations
                                  : flag == "--seconds"    ? &wish.seconds
                                  : flag == "--jobs"       ? &wish.jobs
                                                           : nullptr;
    if (number == nullptr || ++i == argc) usage();
    const std::string_view text = argv[i];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    if (error != std::errc{} || end != text.data() + text.size()) usage();
  }
  return wish;
}

// The seeds, the sum of what happened, and the first that failed.
class Run {
 public:
  explicit Run(const Wish& wish) : wish_(wish), next_(wish.first) {}

  int run() {
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < wish_.jobs; ++i) threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    print();
    return failed_ ? 1 : 0;
  }

 private:
  using Clock = std::chrono::steady_clock;

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }
  bool is_over(std::uint64_t seed) const {
    if (failed_) return true;
    return wish_.seconds > 0 ? elapsed() >= static_cast<double>(wish_.seconds)
                             : seed >= wish_.first + wish_.seeds;
  }

  void work() {
    for (std::uint64_t seed = next_++; !is_over(seed); seed = next_++) {
      SimulationOptions options{.seed = seed, .operations = wish_.operations};
      if (wish_.trace) options.trace = [](const std::string& text) { std::cout << text << "\n"; };
      Simulation simulation(options);
      try {
        simulation.run();
      } catch (const crash::Violation& violation) {
        return fail(seed, violation);
      }
      add(simulation.stats());
      if (wish_.trace) std::printf("state hash %016llx\n", (unsigned long long)simulation.hash());
    }
  }

  void add(const SimulationStats& stats) {
    const std::lock_guard lock(mutex_);
    stats_ += stats;
    if (wish_.seconds == 0 || elapsed() < shown_at_ + 5) return;
    shown_at_ = elapsed();
    std::printf("%.0f s: %llu seeds, %.1f million operations, %llu crashes\n", shown_at_,
                (unsigned long long)stats_.seeds, static_cast<double>(stats_.operations) / 1e6,
                (unsigned long long)stats_.crashes);
    std::fflush(stdout);
  }

  void fail(std::uint64_t seed, const crash::Violation& violation) {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    std::printf(
        "VIOLATED %s\nsee it again: simulate --first %llu --seeds 1 --operations %llu "
        "--trace\n",
        violation.what(), (unsigned long long)seed, (unsigned long long)wish_.operations);
  }

  void print() const {
    const auto row = [](std::string_view what, double count) {
      std::printf("  %-22.*s %14.0f\n", static_cast<int>(what.size()), what.data(), count);
    };
    row("seeds", static_cast<double>(stats_.seeds));
    row("operations", static_cast<double>(stats_.operations));
    row("steps", static_cast<double>(stats_.steps));
    row("checks of everything", static_cast<double>(stats_.checks));
    row("virtual hours", stats_.virtual_seconds / 3600);
    row("grants", static_cast<double>(stats_.granted));
    row("of them shared", static_cast<double>(stats_.granted_shared));
    row("of several permits", static_cast<double>(stats_.granted_several));
    row("sets granted", static_cast<double>(stats_.granted_sets));
    row("of them after a wait", static_cast<double>(stats_.granted_sets_late));
    row("grants told", static_cast<double>(stats_.grants_told));
    row("told again by a secret", static_cast<double>(stats_.grants_told_again));
    row("leases expired", static_cast<double>(stats_.expired));
    row("holds revoked", static_cast<double>(stats_.revoked));
    row("semaphores resized", static_cast<double>(stats_.resized));
    row("holds disconnected", static_cast<double>(stats_.disconnected));
    row("waits given up", static_cast<double>(stats_.gave_up));
    row("crashes", static_cast<double>(stats_.crashes));
    row("starts refused", static_cast<double>(stats_.refused_starts));
    for (std::size_t i = 0; i < kFaultKinds; ++i) {
      row(kFaultNames[i], static_cast<double>(stats_.faults[i]));
    }
    std::printf("  in %.1f s: %.0f operations a second\n", elapsed(),
                static_cast<double>(stats_.operations) / elapsed());
  }

  const Wish wish_;
  const Clock::time_point started_ = Clock::now();
  std::atomic<std::uint64_t> next_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  SimulationStats stats_;
  double shown_at_ = 0;
};

}  // namespace
}  // namespace lockd::simulation

int main(int argc, char** argv) {
  return lockd::simulation::Run(lockd::simulation::parse(argc, argv)).run();
}
