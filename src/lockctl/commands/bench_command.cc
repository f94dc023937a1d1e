// lockctl bench: what was asked for, how far it is, and what came of it.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/json_text.h"
#include "base/text.h"
#include "loadgen/bench_load.h"
#include "lockctl/commands/commands.h"
#include "lockctl/http/json.h"
#include "lockctl/output/failure.h"
#include "lockctl/values.h"

namespace lockd::cli {
namespace {

using Millis = std::chrono::duration<double, std::milli>;

LoadPlan plan_of(const Arguments& arguments) {
  LoadPlan plan;
  plan.http = arguments.has("http");
  plan.workers = arguments.whole("workers").value_or(plan.workers);
  plan.rounds = arguments.whole("rounds").value_or(plan.rounds);
  plan.warmup = arguments.whole("warmup").value_or(plan.warmup);
  plan.key = arguments.text("key").value_or(plan.key);
  plan.shared_key = arguments.has("shared-key");
  plan.timeout_s = arguments.whole("timeout").value_or(plan.timeout_s);
  plan.lease_s = arguments.whole("lease").value_or(plan.lease_s);
  plan.connections = std::max<std::uint64_t>(arguments.whole("connections").value_or(1), 1);
  plan.pipeline = arguments.whole("pipeline").value_or(plan.pipeline);
  if (plan.shared_key && plan.pipeline > 1) {
    throw Failure(kExitUsage, "--pipeline and --shared-key: a queue that waits for itself");
  }
  constexpr std::size_t kKeyMax = 200;  // what is added to it must fit as well
  if (!is_name(plan.key) || plan.key.size() > kKeyMax) {
    throw Failure(kExitUsage, "--key: 1 to 200 bytes of UTF-8 without control characters");
  }
  return plan;
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

double rate_of(const LoadFigures& stats) {
  return static_cast<double>(stats.rounds) /
         std::max(std::chrono::duration<double>(stats.elapsed).count(), 1e-9);
}

std::string table_of(const LoadPlan& plan, const LoadFigures& stats, const Style& style) {
  std::string out =
      grouped(plan.workers) + " workers x " + grouped(plan.rounds) + " rounds, " +
      (plan.http ? "HTTP" : "line protocol") + ", " + (plan.shared_key ? "one key" : "a key each") +
      ", pipeline " + std::to_string(plan.pipeline) + "\n" +
      style.bold(grouped(static_cast<std::uint64_t>(rate_of(stats)))) +
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

std::string record_of(const LoadPlan& plan, const LoadFigures& stats) {
  JsonObject json;
  json.add("protocol", plan.http ? "http" : "line");
  json.add("workers", plan.workers);
  json.add("rounds_each", plan.rounds);
  json.add("warmup_each", plan.warmup);
  json.add("shared_key", plan.shared_key);
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

}  // namespace

int execute_bench(const Invocation& invocation) {
  const LoadPlan plan = plan_of(invocation.arguments);
  LoadFigures stats;
  {
    ProgressBar bar(plan.workers * plan.rounds);
    stats = run_load(plan, invocation.settings, [&](std::uint64_t done) { bar.show(done); });
  }
  if (invocation.arguments.has("json")) {
    invocation.output.line(record_of(plan, stats));
  } else {
    invocation.output.write(table_of(plan, stats, invocation.output.style()));
  }
  return kExitOk;
}

}  // namespace lockd::cli
