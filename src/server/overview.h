// The state of the whole server in a few numbers, as JSON: GET /v1/overview.
#pragma once

#include <string>

namespace lockd {

struct Shared;

std::string overview_json(Shared& shared);

}  // namespace lockd
