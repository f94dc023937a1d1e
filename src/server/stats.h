// The stats document of the line protocol: one line of compact JSON, valid for any key.
#pragma once

#include <cstdint>
#include <string>

#include "lockd/engine.h"
#include "signals/signal_hub.h"

namespace lockd {

// One pattern and group that somebody listens to.
std::string audience_json(const AudienceStatus& audience);

// Walks through every key, a few hundred per hold of a lock, and waits until what it tells of is
// durable: call it where time does not matter. Empty when it never will be.
std::string stats_json(Engine& engine, const SignalHub& hub, std::uint64_t connections);

}  // namespace lockd
