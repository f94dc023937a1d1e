// The stats document of the line protocol: one line of compact JSON, valid for any key.
#pragma once

#include <cstdint>
#include <string>

#include "lockd/engine.h"
#include "signals/signal_hub.h"

namespace lockd {

// Walks through every key, a few hundred per hold of a lock: call it where time does not matter.
std::string stats_json(const Engine& engine, const SignalHub& hub, std::uint64_t connections);

}  // namespace lockd
