#include "server/reports/report.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "base/version.h"
#include "server/server_context.h"
#include "server/settings/option_table.h"

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

std::string signals_json(const SignalHub& hub, const PermitPtr& confined_to) {
  JsonArray channels;
  std::vector<AudienceStatus> first = hub.list_some({});
  std::erase_if(first, [&](const AudienceStatus& audience) {
    return confined_to != nullptr && !confined_to->may_listen(audience.pattern);
  });
  first.resize(std::min(first.size(), kChannelsMax));
  for (const AudienceStatus& audience : first) channels.add_json(audience_json(audience));
  JsonObject json;
  json.add("listeners", hub.listeners());
  json.add_json("channels", channels.finish());
  return json.finish();
}

// The state of the whole server in a few numbers, also for who may see some of its keys only: GET
// /v1/overview.
std::string overview_json(ServerContext& shared, const PermitPtr& confined_to) {
  const Stats stats = shared.engine.stats();
  JsonObject json;
  json.add("version", kVersion);
  json.add("now_unix_ms", unix_ms_now());
  json.add("uptime_ms", whole_ms(std::chrono::steady_clock::now() - shared.started));
  json.add("started_unix_ms", whole_ms(shared.started_at.time_since_epoch()));
  json.add("ready", shared.why_not_ready().empty());
  json.add("draining", shared.draining.load());
  json.add("journal", shared.journal_state());
  if (shared.cluster != nullptr) {
    json.add_json("cluster", cluster_json(shared));
  }
  if (shared.line_port != 0) json.add("line_port", shared.line_port);
  if (shared.http_port != 0) json.add("http_port", shared.http_port);
  json.add("connections", shared.admission.connections());
  json.add_json("keys", keys_json(stats, shared.keys_max()));
  json.add("locks_held", stats.locks_held);
  json.add("lock_waiters", stats.lock_waiters);
  json.add("semaphore_holders", stats.semaphore_holders);
  json.add("semaphore_waiters", stats.semaphore_waiters);
  json.add_json("totals", totals_json(stats));
  json.add_json("wait", histogram_json(stats.wait_time));
  json.add_json("hold", histogram_json(stats.hold_time));
  json.add_json("signals", signals_json(shared.hub, confined_to));
  return json.finish();
}

}  // namespace

std::string audience_json(const AudienceStatus& audience) {
  JsonObject json;
  json.add("pattern", audience.pattern);
  if (!audience.group.empty()) json.add("group", audience.group);
  json.add("listeners", audience.listeners);
  return json.finish();
}

ReportPiece make_report(ServerContext& shared, const ReportRequest& report) {
  if (report.rest != nullptr) return report.rest->next();
  switch (report.what) {
    case ReportRequest::What::stats:
      return stats_report(shared, report.shows_clients, report.confined_to)->next();
    case ReportRequest::What::keys:
      return key_listing(shared.engine, shared.clients, report.keys, report.confined_to)->next();
    case ReportRequest::What::clients: return client_listing(shared, report.clients)->next();
    case ReportRequest::What::history:
      return history_report(shared, report.history, report.confined_to);
    case ReportRequest::What::overview: return {overview_json(shared, report.confined_to)};
    case ReportRequest::What::metrics: return {metrics_text(shared)};
  }
  return {};
}

}  // namespace lockd
