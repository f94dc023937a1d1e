#include "line_load.h"

#include "loadgen/load.h"

namespace lockd::bench {

using namespace std::chrono_literals;

LoadResult run_load(Protocol protocol, std::uint16_t port, LoadShape shape, LoadTimes times,
                    const std::function<std::chrono::nanoseconds()>& server_cpu) {
  loadgen::Load load({.protocol = protocol,
                      .workers = static_cast<std::uint64_t>(shape.connections),
                      .pipeline = static_cast<std::uint64_t>(shape.pipeline),
                      .key = "key",
                      .one_key = shape.one_key,
                      .wait_s = shape.one_key ? 60U : 0U,
                      .lease_s = 30},
                     // A server that says nothing for a second has lost a request.
                     {{.address = {"127.0.0.1", port}, .options = {.reply_timeout = 1s}}});
  load.run_for(times.warm_up);
  const auto cpu_before = server_cpu();
  const loadgen::LoadStats stats = load.run_for(times.measured);
  return {.requests = stats.request.count(),
          .elapsed = stats.elapsed,
          .server_cpu = server_cpu() - cpu_before,
          .latencies = stats.request};
}

}  // namespace lockd::bench
