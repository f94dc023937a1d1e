#include "server/reports/report.h"

#include "server/reports/key_listing.h"
#include "server/reports/metrics.h"
#include "server/reports/overview.h"
#include "server/reports/stats.h"
#include "server/server_context.h"

namespace lockd {

ReportResult make_report(ServerContext& shared, const ReportRequest& report) {
  switch (report.what) {
    case ReportRequest::What::stats:
      return stats_json(shared.engine, shared.hub, shared.admission.connections(),
                        shared.cluster.get(), shared.options.node_id);
    case ReportRequest::What::keys: return key_listing_json(shared.engine, report.keys);
    case ReportRequest::What::overview: return {overview_json(shared)};
    case ReportRequest::What::metrics: return {metrics_text(shared)};
  }
  return {};
}

}  // namespace lockd
