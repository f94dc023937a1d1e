// What a reservation costs over HTTP beside the line protocol: acquire and release of one server,
// by both, in turns.
//
// Run by `make bench`; see docs/performance.md. `http_bench [SECONDS]`.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "candidate.h"
#include "measured_servers.h"

namespace lockd::bench {
namespace {

constexpr int kRounds = 7;
constexpr double kCpuMax = 3.0;  // of the line protocol's, per request

void run_shape(LoadShape shape, double seconds) {
  Candidate line{lockd_command(), Protocol::line};
  Candidate http{http_command(), Protocol::http};
  for (int round = 0; round < kRounds; ++round) {
    for (Candidate* candidate : {&line, &http}) run_once(*candidate, shape, seconds);
  }
  std::printf("%d connections, pipeline %d\n", shape.connections, shape.pipeline);
  for (const Candidate* c : {&line, &http}) {
    std::printf("  %-8s %9.0f req/s   p50 %6.0f us   p99 %6.0f us   CPU %6.0f ns/req\n",
                c->command.name.c_str(), median(c->rate), median(c->p50_us), median(c->p99_us),
                median(c->cpu_ns));
    record_medians("http", *c, shape);
  }
  const double cpu = ratio(http.cpu_ns, line.cpu_ns);
  std::printf("  CPU per request, of the line protocol's: %.2f, aim %.1f: %s\n\n", cpu, kCpuMax,
              cpu <= kCpuMax ? "reached" : "missed");
  std::fflush(stdout);
}

}  // namespace
}  // namespace lockd::bench

int main(int argc, char** argv) {
  using namespace lockd::bench;
  try {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 0.6;
    std::printf("Acquire and release over HTTP and over the line protocol; %s.\n",
                pin_load().c_str());
    std::printf("Medians of %d runs of %.1f s, taken in turns.\n\n", kRounds, seconds);
    raise_file_limit();
    for (const int connections : {64, 1000}) run_shape({connections, 1}, seconds);
    run_shape({64, 16}, seconds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "http_bench: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
