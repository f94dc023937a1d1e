// Keys with who holds them and who waits, as JSON: GET /v1/locks.
#pragma once

#include "lockd/engine.h"
#include "server/reports/report.h"

namespace lockd {

ReportResult key_listing_json(Engine& engine, const KeyQuery& query);

}  // namespace lockd
