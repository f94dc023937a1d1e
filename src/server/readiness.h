// Whether a server can be expected to serve: what /readyz, the overview and the metrics say.
#pragma once

#include <string_view>

#include "lockd/journal.h"

namespace lockd {

// Empty when it can.
inline std::string_view why_not_ready(bool draining, Journal::State journal) {
  if (draining) return "draining";
  return journal == Journal::State::failed ? "storage" : "";
}

}  // namespace lockd
