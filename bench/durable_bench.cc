// What it costs to keep everything: requests per second, and per sync, with a journal beside
// without one, and beside Redis that syncs its log for every command.
//
// Run by `make bench`; figures and what they mean are in docs/performance.md. Journals are written
// below the folder the bench runs in, or below LOCKD_BENCH_DISK: the disk there is what is
// measured.
//
//   durable_bench [rounds [seconds]]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "candidate.h"
#include "journal/inspect.h"
#include "measured_servers.h"

namespace lockd::bench {
namespace {

namespace fs = std::filesystem;

// A folder that is emptied before every run, and removed in the end.
class Scratch {
 public:
  Scratch() {
    const char* const disk = std::getenv("LOCKD_BENCH_DISK");
    std::string name = fs::path(disk == nullptr ? "." : disk) / "durable-bench-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    root_ = fs::absolute(name);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  std::string folder(const char* name) const { return root_ / name; }
  void empty() const {
    for (const char* name : {"wal", "redis"}) {
      fs::remove_all(root_ / name);
      fs::create_directory(root_ / name);
      fs::permissions(root_ / name, fs::perms::owner_all);
    }
  }

 private:
  fs::path root_;
};

// Every sync makes one frame durable, unless more than a mebibyte has gathered.
std::uint64_t frames_in(const std::string& directory) {
  struct Counter final : Inspector {
    void frame(const Frame&) override { ++frames; }
    std::uint64_t frames = 0;
  } counter;
  inspect(directory, counter);
  return counter.frames;
}

struct Comparison {
  Candidate forgetful{lockd_command(), Protocol::line};
  Candidate durable{lockd_command(), Protocol::line};
  std::vector<Candidate> redis;  // one, or none
  std::vector<double> per_sync;  // requests
};

Comparison compare(const Scratch& scratch) {
  Comparison comparison;
  comparison.durable.command.name = "journal";
  for (const std::string& word : {std::string("--wal"), scratch.folder("wal")}) {
    comparison.durable.command.words.push_back(word);
  }
  if (auto redis = redis_command()) {
    redis->name = "redis";
    for (std::string& word : redis->words) {
      if (word == "no") word = "yes";  // --appendonly
    }
    for (const std::string& word : {std::string("--appendfsync"), std::string("always"),
                                    std::string("--dir"), scratch.folder("redis")}) {
      redis->words.push_back(word);
    }
    comparison.redis.push_back({*redis, Protocol::redis});
  }
  return comparison;
}

void print_row(const char* name, const Candidate& c, double per_sync) {
  std::printf("  %-10s %9.0f %9.0f %9.0f %11.0f", name, median(c.rate), median(c.p50_us),
              median(c.p99_us), median(c.cpu_ns));
  if (per_sync > 0) std::printf(" %9.1f", per_sync);
  std::printf("\n");
}

void run_shape(const Scratch& scratch, const LoadShape& shape, int rounds, double seconds) {
  Comparison all = compare(scratch);
  for (int round = 0; round < rounds; ++round) {
    scratch.empty();
    run_once(all.forgetful, shape, seconds);
    run_once(all.durable, shape, seconds);
    // The frames are those of the warm-up too.
    const double requests = all.durable.rate.back() * (seconds + 0.2);
    all.per_sync.push_back(requests / static_cast<double>(frames_in(scratch.folder("wal"))));
    if (!shape.one_key) {
      for (Candidate& redis : all.redis) run_once(redis, shape, seconds);
    }
  }
  std::printf("%d connections, pipeline %d, %s\n", shape.connections, shape.pipeline,
              shape.one_key ? "one key for all" : "a key each");
  std::printf("  %-10s %9s %9s %9s %11s %9s\n", "", "req/s", "p50 us", "p99 us", "CPU ns/req",
              "req/sync");
  record_medians("durable", all.forgetful, shape);
  record_medians("durable", all.durable, shape);
  print_row("no journal", all.forgetful, 0);
  print_row("journal", all.durable, median(all.per_sync));
  std::printf("  CPU per request, of that without a journal: %.2f\n",
              ratio(all.durable.cpu_ns, all.forgetful.cpu_ns));
  for (const Candidate& redis : all.redis) {
    if (shape.one_key) break;  // it has no queue to wait in
    record_medians("durable", redis, shape);
    print_row("redis", redis, 0);
    std::printf("  requests per second, of Redis's: %.2f\n", ratio(all.durable.rate, redis.rate));
  }
  std::printf("\n");
  std::fflush(stdout);
}

void run(int rounds, double seconds) {
  const Scratch scratch;
  std::printf("Acquire and release, made durable; one thread a server, and the journal's; %s.\n",
              pin_load().c_str());
  std::printf("Medians of %d runs of %.1f s, taken in turns.\n", rounds, seconds);
  if (!redis_command()) std::printf("redis-server is not installed: left out.\n");
  std::printf("\n");
  raise_file_limit();
  for (const LoadShape shape : {LoadShape{1, 1}, LoadShape{64, 1}, LoadShape{1000, 1},
                                LoadShape{64, 16}, LoadShape{64, 1, true}}) {
    run_shape(scratch, shape, rounds, seconds);
  }
}

}  // namespace
}  // namespace lockd::bench

int main(int argc, char** argv) {
  try {
    lockd::bench::run(argc > 1 ? std::atoi(argv[1]) : 5, argc > 2 ? std::atof(argv[2]) : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "durable_bench: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
