// The stats document of the line protocol: one line of compact JSON, valid for any key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockd/engine.h"
#include "pubsub/signal_hub.h"
#include "replication/cluster_journal.h"
#include "server/reports/report.h"

namespace lockd {

// One pattern and group that somebody listens to.
std::string audience_json(const AudienceStatus& audience);

// Who leads, and how far this server has come.
std::string cluster_json(const ClusterJournal& cluster, std::string_view node_id);

// Walks through every key, a few hundred per hold of a lock: call it where time does not matter.
// With what is known of the cluster, if the server is in one.
ReportResult stats_json(Engine& engine, const SignalHub& hub, std::uint64_t connections,
                        const ClusterJournal* cluster = nullptr, std::string_view node_id = {});

}  // namespace lockd
