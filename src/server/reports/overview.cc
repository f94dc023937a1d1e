#include "server/reports/overview.h"

#include <chrono>
#include <string_view>

#include "base/json_text.h"
#include "server/milliseconds.h"
#include "server/reports/stats.h"
#include "server/server_context.h"
#include "server/version.h"

namespace lockd {
namespace {

constexpr std::size_t kChannelsMax = 100;

std::string histogram_json(const Histogram& histogram) {
  JsonArray bounds;
  for (std::size_t i = 0; i < Histogram::kBoundCount; ++i) {
    append_json_number(bounds.next(),
                       std::chrono::duration<double, std::milli>(Histogram::bound(i)).count());
  }
  JsonArray counts;
  for (const std::uint64_t count : histogram.buckets()) append_json_number(counts.next(), count);
  JsonObject json;
  json.add_json("le_ms", bounds.finish());
  json.add_json("counts", counts.finish());
  json.add("sum_ms", histogram.sum_seconds() * 1000);
  return json.finish();
}

std::string totals_json(const Stats& stats) {
  JsonObject json;
  json.add("grants", stats.grants);
  json.add("contended", stats.contended);
  json.add("renewals", stats.renewals);
  json.add("releases", stats.releases);
  json.add("expiries", stats.expiries);
  json.add("disconnects", stats.disconnects);
  json.add("timeouts", stats.timeouts);
  json.add("cancels", stats.cancels);
  return json.finish();
}

std::string keys_json(const Stats& stats, std::uint64_t keys_max) {
  JsonObject json;
  json.add("count", stats.keys);
  json.add("idle", stats.idle_keys);
  json.add("max", keys_max);
  return json.finish();
}

std::string signals_json(const SignalHub& hub) {
  JsonArray channels;
  std::uint64_t listeners = 0;
  std::size_t listed = 0;
  for (const AudienceStatus& audience : hub.list()) {
    listeners += audience.listeners;
    if (listed++ >= kChannelsMax) continue;
    channels.add_json(audience_json(audience));
  }
  JsonObject json;
  json.add("listeners", listeners);
  json.add_json("channels", channels.finish());
  return json.finish();
}

}  // namespace

std::string overview_json(ServerContext& shared) {
  const Stats stats = shared.engine.stats();
  JsonObject json;
  json.add("version", kVersion);
  json.add("now_unix_ms", unix_ms_now());
  json.add("uptime_ms", whole_ms(std::chrono::steady_clock::now() - shared.started));
  json.add("ready", shared.why_not_ready().empty());
  json.add("draining", shared.draining.load());
  json.add("journal", shared.journal_state());
  if (shared.cluster != nullptr) {
    json.add_json("cluster", cluster_json(*shared.cluster, shared.options.node_id));
  }
  json.add("connections", shared.admission.connections());
  json.add_json("keys", keys_json(stats, shared.options.max_locks));
  json.add("locks_held", stats.locks_held);
  json.add("lock_waiters", stats.lock_waiters);
  json.add("semaphore_holders", stats.semaphore_holders);
  json.add("semaphore_waiters", stats.semaphore_waiters);
  json.add_json("totals", totals_json(stats));
  json.add_json("wait", histogram_json(stats.wait_time));
  json.add_json("hold", histogram_json(stats.hold_time));
  json.add_json("signals", signals_json(shared.hub));
  return json.finish();
}

}  // namespace lockd
