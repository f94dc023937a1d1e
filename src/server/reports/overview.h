// The state of the whole server in a few numbers, as JSON: GET /v1/overview.
#pragma once

#include <string>

namespace lockd {

struct ServerContext;

std::string overview_json(ServerContext& shared);

}  // namespace lockd
