// What the server costs beside a floor and beside Redis: requests per second, latencies, and the
// server's CPU time per request.
//
// Run by `make bench`; figures and what they mean are in docs/performance.md. Every run has a fresh
// server. Runs of all servers take turns, so that what else the machine does meets each alike.
//
//   server_bench [--seconds S] [--rounds N] [--connections N,...] [--pipeline N,...]
//                [--against LOCKD]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "candidate.h"
#include "measured_servers.h"

namespace lockd::bench {
namespace {

// What is to be reached, by the depth of the pipeline.
struct Aims {
  double cpu_of_floor;   // at most
  double rate_of_redis;  // at least
};
Aims aims_of(LoadShape shape) { return shape.pipeline == 1 ? Aims{1.25, 1.0} : Aims{2.0, 1.5}; }

struct Settings {
  double seconds = 1;  // of each run
  int rounds = 7;
  std::vector<int> connections{64, 256, 1000};
  std::vector<int> pipelines{1, 16};
  std::string against;  // another lockd, to compare with
};

double positive(const std::string& name, const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (end != value.c_str() && *end == '\0' && number > 0 && number <= 100'000) return number;
  throw std::runtime_error(name + " takes a positive number, not '" + value + "'");
}

int positive_count(const std::string& name, const std::string& value) {
  return static_cast<int>(std::ceil(positive(name, value)));
}

std::vector<int> counts(const std::string& name, const std::string& list) {
  std::vector<int> numbers;
  std::istringstream values(list);
  for (std::string value; std::getline(values, value, ',');) {
    numbers.push_back(positive_count(name, value));
  }
  if (numbers.empty()) throw std::runtime_error(name + " takes one number or several");
  return numbers;
}

Settings settings_from(int argc, char** argv) {
  Settings settings;
  constexpr const char* kSeconds = "LOCKD_BENCH_SECONDS";
  if (const char* value = std::getenv(kSeconds)) settings.seconds = positive(kSeconds, value);
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (i + 1 == argc) throw std::runtime_error(flag + ": flags come with a value each");
    const char* const value = argv[i + 1];
    if (flag == "--seconds") {
      settings.seconds = positive(flag, value);
    } else if (flag == "--rounds") {
      settings.rounds = positive_count(flag, value);
    } else if (flag == "--connections") {
      settings.connections = counts(flag, value);
    } else if (flag == "--pipeline") {
      settings.pipelines = counts(flag, value);
    } else if (flag == "--against") {
      settings.against = value;
    } else {
      throw std::runtime_error("unknown flag " + flag);
    }
  }
  return settings;
}

std::vector<Candidate> candidates_of(const Settings& settings) {
  std::vector<Candidate> candidates{{floor_command(), Protocol::line},
                                    {lockd_command(), Protocol::line}};
  if (!settings.against.empty()) {
    ServerCommand against = lockd_command(settings.against);
    against.name = "against";
    candidates.push_back({std::move(against), Protocol::line});
  }
  if (const auto redis = redis_command()) candidates.push_back({*redis, Protocol::redis});
  return candidates;
}

const Candidate* find(const std::vector<Candidate>& candidates, std::string_view name) {
  for (const Candidate& candidate : candidates) {
    if (candidate.command.name == name) return &candidate;
  }
  return nullptr;
}

void print_table(const std::vector<Candidate>& candidates) {
  const Candidate& floor = candidates.front();
  std::printf("  %-8s %9s %9s %9s %9s %11s %10s %10s\n", "", "req/s", "p50 us", "p99 us",
              "p99.9 us", "CPU ns/req", "CPU/floor", "rate/floor");
  for (const Candidate& c : candidates) {
    std::printf("  %-8s %9.0f %9.0f %9.0f %9.0f %11.0f %10.2f %10.2f\n", c.command.name.c_str(),
                median(c.rate), median(c.p50_us), median(c.p99_us), median(c.p999_us),
                median(c.cpu_ns), ratio(c.cpu_ns, floor.cpu_ns), ratio(c.rate, floor.rate));
  }
}

void print_aim(const char* what, double value, bool reached, double aim) {
  std::printf("  %s %.2f, aim %.2f: %s\n", what, value, aim, reached ? "reached" : "missed");
}

void print_verdicts(const std::vector<Candidate>& candidates, LoadShape shape) {
  const Aims aims = aims_of(shape);
  const Candidate& ours = *find(candidates, "lockd");
  const double cpu = ratio(ours.cpu_ns, candidates.front().cpu_ns);
  print_aim("CPU per request, of the floor's:", cpu, cpu <= aims.cpu_of_floor, aims.cpu_of_floor);
  if (const Candidate* other = find(candidates, "against")) {
    std::printf("  CPU per request, of the other server: %.3f\n",
                ratio(ours.cpu_ns, other->cpu_ns));
  }
  if (const Candidate* redis = find(candidates, "redis")) {
    const double rate = ratio(ours.rate, redis->rate);
    print_aim("requests per second, of Redis's:", rate, rate >= aims.rate_of_redis,
              aims.rate_of_redis);
  }
}

void run_shape(LoadShape shape, const Settings& settings) {
  std::vector<Candidate> candidates = candidates_of(settings);
  for (int round = 0; round < settings.rounds; ++round) {
    for (Candidate& candidate : candidates) run_once(candidate, shape, settings.seconds);
  }
  std::printf("%d connections, pipeline %d\n", shape.connections, shape.pipeline);
  print_table(candidates);
  print_verdicts(candidates, shape);
  for (const Candidate& candidate : candidates) record_medians("load", candidate, shape);
  std::printf("\n");
  std::fflush(stdout);
}

void run(const Settings& settings) {
  std::printf("Acquire and release, one thread a server; %s.\n", pin_load().c_str());
  std::printf("Medians of %d runs of %.1f s, taken in turns.\n", settings.rounds, settings.seconds);
  double load = 0;
  if (::getloadavg(&load, 1) == 1) {
    std::printf(
        "Load average of the machine before: %.1f. Rates and latencies mean something only "
        "if nothing else runs.\n",
        load);
  }
  if (!redis_command()) std::printf("redis-server is not installed: left out.\n");
  std::printf("\n");
  raise_file_limit();
  for (const int pipeline : settings.pipelines) {
    for (const int connections : settings.connections) run_shape({connections, pipeline}, settings);
  }
}

}  // namespace
}  // namespace lockd::bench

int main(int argc, char** argv) {
  try {
    lockd::bench::run(lockd::bench::settings_from(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "server_bench: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
