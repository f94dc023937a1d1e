#include "server/report.h"

#include "server/key_listing.h"
#include "server/metrics.h"
#include "server/overview.h"
#include "server/shared.h"
#include "server/stats.h"

namespace lockd {

Findings make_report(Shared& shared, const Report& report) {
  switch (report.what) {
    case Report::What::stats:
      return stats_json(shared.engine, shared.hub, shared.admission.connections(),
                        shared.cluster.get(), shared.options.node_id);
    case Report::What::keys: return key_listing_json(shared.engine, report.keys);
    case Report::What::overview: return {overview_json(shared)};
    case Report::What::metrics: return {metrics_text(shared)};
  }
  return {};
}

}  // namespace lockd
