#include "candidate.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <stdexcept>

#include "record.h"

namespace lockd::bench {
namespace {

using namespace std::chrono_literals;
using Micros = std::chrono::duration<double, std::micro>;
using Seconds = std::chrono::duration<double>;

constexpr auto kWarmUp = 200ms;

}  // namespace

void run_once(Candidate& candidate, const LoadShape& shape, double seconds) {
  const ChildServer server(candidate.command);
  const auto measured = std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(seconds));
  const LoadResult result = run_load(candidate.protocol, server.port(), shape, {kWarmUp, measured},
                                     [&] { return server.cpu_time(); });
  if (result.requests == 0) {
    throw std::runtime_error("nothing was answered in the time that counts: measure for longer");
  }
  const auto requests = static_cast<double>(result.requests);
  const auto latency = [&](double p) { return Micros(result.latencies.percentile(p)).count(); };
  candidate.rate.push_back(requests / Seconds(result.elapsed).count());
  candidate.cpu_ns.push_back(static_cast<double>(result.server_cpu.count()) / requests);
  candidate.p50_us.push_back(latency(0.5));
  candidate.p99_us.push_back(latency(0.99));
  candidate.p999_us.push_back(latency(0.999));
}

void record_medians(std::string_view figure, const Candidate& candidate, const LoadShape& shape) {
  record(figure, {{"server", candidate.command.name},
                  {"connections", shape.connections},
                  {"pipeline", shape.pipeline},
                  {"keys", shape.one_key ? "one" : "each"},
                  {"rate", median(candidate.rate)},
                  {"cpu_ns", median(candidate.cpu_ns)},
                  {"p50_us", median(candidate.p50_us)},
                  {"p99_us", median(candidate.p99_us)},
                  {"p999_us", median(candidate.p999_us)}});
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double ratio(const std::vector<double>& values, const std::vector<double>& to) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < values.size(); ++i) ratios.push_back(values[i] / to[i]);
  return median(ratios);
}

}  // namespace lockd::bench
