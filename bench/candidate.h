// One server that is measured beside others, and what its runs of one shape have shown.
#pragma once

#include <string_view>
#include <vector>

#include "child_server.h"
#include "line_load.h"

namespace lockd::bench {

struct Candidate {
  ServerCommand command;
  Protocol protocol;

  // One of each per run, in their order.
  std::vector<double> rate{};    // requests per second
  std::vector<double> cpu_ns{};  // of the server, per request
  std::vector<double> p50_us{}, p99_us{}, p999_us{};
};

// A fresh server, warmed up for a moment, then measured. Throws std::runtime_error if it answers
// nothing.
void run_once(Candidate& candidate, const LoadShape& shape, double seconds);

// Adds what its runs have shown to what is recorded (record.h), as `figure`.
void record_medians(std::string_view figure, const Candidate& candidate, const LoadShape& shape);

double median(std::vector<double> values);
// The median of the ratios within each round: what slows a whole round down cancels out.
double ratio(const std::vector<double>& values, const std::vector<double>& to);

}  // namespace lockd::bench
