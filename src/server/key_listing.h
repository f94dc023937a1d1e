// Keys with who holds them and who waits, as JSON: GET /v1/locks.
#pragma once

#include <string>

#include "lockd/engine.h"
#include "server/report.h"

namespace lockd {

// Waits until what it tells of is durable; empty when it never will be.
std::string key_listing_json(Engine& engine, const KeyQuery& query);

}  // namespace lockd
