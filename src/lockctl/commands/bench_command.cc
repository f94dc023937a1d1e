// lockctl bench: what was asked for, how far it is, and what came of it.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "base/text.h"
#include "loadgen/load.h"
#include "lockctl/api/json.h"
#include "lockctl/commands/commands.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"

namespace lockd::cli {
namespace {

using loadgen::LoadError;
using loadgen::LoadPlan;
using loadgen::LoadServer;
using loadgen::LoadStats;
using loadgen::Protocol;
using Millis = std::chrono::duration<double, std::milli>;

constexpr std::uint64_t kRounds = 50;  // of each worker
constexpr std::uint64_t kWarmUp = 10;

std::uint64_t seconds_or(std::uint64_t otherwise, const Arguments& arguments,
                         std::string_view option) {
  const auto given = whole_seconds(arguments, option);
  return given ? static_cast<std::uint64_t>(given->count()) : otherwise;
}

LoadPlan plan_of(const Arguments& arguments) {
  LoadPlan plan;
  plan.protocol = arguments.has("http") ? Protocol::http : Protocol::line;
  plan.workers = arguments.whole("workers").value_or(plan.workers);
  plan.key = arguments.text("key").value_or(plan.key);
  plan.one_key = arguments.has("shared-key");
  plan.wait_s = seconds_or(plan.wait_s, arguments, "timeout");
  plan.lease_s = seconds_or(plan.lease_s, arguments, "lease");
  plan.connections = std::max<std::uint64_t>(arguments.whole("connections").value_or(1), 1);
  plan.pipeline = arguments.whole("pipeline").value_or(plan.pipeline);
  if (plan.one_key && plan.pipeline > 1) {
    throw Failure(kExitUsage,
                  "--pipeline and --shared-key: a worker would wait behind its own hold");
  }
  constexpr std::size_t kKeyMax = 200;  // what is added to it must fit as well
  if (!is_name(plan.key) || plan.key.size() > kKeyMax) {
    throw Failure(kExitUsage, "--key: 1 to 200 bytes of UTF-8 without control characters");
  }
  return plan;
}

std::vector<LoadServer> servers_of(const LoadPlan& plan, const Settings& settings) {
  std::vector<LoadServer> servers;
  if (plan.protocol == Protocol::line) {
    for (const client::Address& address : servers_to_ask(settings)) {
      servers.push_back({address, settings.connect});
    }
    return servers;
  }
  for (const HttpAddress& http : settings.http_servers) {
    LoadServer& server = servers.emplace_back(LoadServer{http.address, settings.connect});
    if (!http.tls) server.options.tls.reset();
    if (http.tls && !server.options.tls) server.options.tls.emplace();
  }
  return servers;
}

ExitCode exit_code_of(LoadError::Why why) {
  using Why = LoadError::Why;
  switch (why) {
    case Why::misconfigured: return kExitConfig;
    case Why::unreachable: return kExitUnavailable;
    case Why::untrusted: return kExitNoPermission;
    case Why::garbled: return kExitProtocol;
    case Why::timed_out: return kExitConflict;
    case Why::refused: return kExitTemporary;
  }
  return kExitSoftware;
}

// A connection is a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// On standard error, if that is a terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::uint64_t total) : total_(total), on_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressBar() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }

  void show(std::uint64_t done) {
    if (!on_) return;
    constexpr std::size_t kWidth = 40;
    const auto filled =
        static_cast<std::size_t>(done * kWidth / std::max<std::uint64_t>(total_, 1));
    std::string bar(filled, '#');
    bar.resize(kWidth, '.');
    std::fprintf(stderr, "\r[%s] %s of %s rounds\x1b[K", bar.c_str(), grouped(done).c_str(),
                 grouped(total_).c_str());
    shown_ = true;
  }

 private:
  const std::uint64_t total_;
  const bool on_;
  bool shown_ = false;
};

std::string ms_text(std::chrono::nanoseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", Millis(time).count());
  return text;
}

double rate_of(const LoadStats& stats) {
  return static_cast<double>(stats.rounds) /
         std::max(std::chrono::duration<double>(stats.elapsed).count(), 1e-9);
}

struct Rounds {
  std::uint64_t counted = kRounds;
  std::uint64_t warm_up = kWarmUp;
};

std::string table_of(const LoadPlan& plan, const Rounds& rounds, const LoadStats& stats,
                     const Style& style) {
  std::string out =
      grouped(plan.workers) + " workers x " + grouped(rounds.counted) + " rounds, " +
      (plan.protocol == Protocol::http ? "HTTP" : "line protocol") + ", " +
      (plan.one_key ? "one key" : "a key each") + ", pipeline " + std::to_string(plan.pipeline) +
      "\n" + style.bold(grouped(static_cast<std::uint64_t>(rate_of(stats)))) +
      " rounds a second (an acquire and a release each), " + human(stats.elapsed) + "\n\n";
  Table table({"", "p50>", "p90>", "p99>", "p99.9>", "max>"});
  const auto add = [&](const char* name, const Latencies& times) {
    table.add({name, ms_text(times.percentile(0.5)), ms_text(times.percentile(0.9)),
               ms_text(times.percentile(0.99)), ms_text(times.percentile(0.999)),
               ms_text(times.max())});
  };
  add("acquire", stats.acquire);
  add("release", stats.release);
  add("round", stats.round);
  return out + table.text(style);
}

std::string json_of(const Latencies& times) {
  JsonObject json;
  json.add("p50_ms", rounded(Millis(times.percentile(0.5)).count()));
  json.add("p90_ms", rounded(Millis(times.percentile(0.9)).count()));
  json.add("p99_ms", rounded(Millis(times.percentile(0.99)).count()));
  json.add("p999_ms", rounded(Millis(times.percentile(0.999)).count()));
  json.add("max_ms", rounded(Millis(times.max()).count()));
  return json.finish();
}

std::string record_of(const LoadPlan& plan, const Rounds& rounds, const LoadStats& stats) {
  JsonObject json;
  json.add("protocol", plan.protocol == Protocol::http ? "http" : "line");
  json.add("workers", plan.workers);
  json.add("rounds_each", rounds.counted);
  json.add("warmup_each", rounds.warm_up);
  json.add("shared_key", plan.one_key);
  json.add("connections_each", plan.connections);
  json.add("pipeline", plan.pipeline);
  json.add("rounds", stats.rounds);
  json.add("elapsed_s", rounded(std::chrono::duration<double>(stats.elapsed).count()));
  json.add("rounds_per_s", rounded(rate_of(stats)));
  json.add_json("acquire", json_of(stats.acquire));
  json.add_json("release", json_of(stats.release));
  json.add_json("round", json_of(stats.round));
  return json.finish();
}

// Before the rounds that count every worker warms up, and all begin together.
LoadStats run_load(const LoadPlan& plan, const Rounds& rounds, const Settings& settings) {
  raise_descriptor_limit();
  try {
    loadgen::Load load(plan, servers_of(plan, settings));
    if (rounds.warm_up > 0) load.run_rounds(rounds.warm_up);
    ProgressBar bar(plan.workers * rounds.counted);
    return load.run_rounds(rounds.counted, [&](std::uint64_t done) { bar.show(done); });
  } catch (const LoadError& error) {
    throw Failure(exit_code_of(error.why()), error.what());
  }
}

}  // namespace

int execute_bench(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  const LoadPlan plan = plan_of(arguments);
  const Rounds rounds{.counted = arguments.whole("rounds").value_or(kRounds),
                      .warm_up = arguments.whole("warmup").value_or(kWarmUp)};
  const LoadStats stats = run_load(plan, rounds, invocation.settings);
  if (arguments.has("json")) {
    invocation.output.line(record_of(plan, rounds, stats));
  } else {
    invocation.output.write(table_of(plan, rounds, stats, invocation.output.style()));
  }
  return kExitOk;
}

}  // namespace lockd::cli
