// The counters of the whole server as Prometheus reads them: GET /metrics.
//
// The hot path counts into plain numbers of its own (Stats under a shard's lock, WorkerStats of
// one thread each); they are summed up here, when somebody asks.
#pragma once

#include <string>

namespace lockd {

struct ServerContext;

std::string metrics_text(ServerContext& shared);

}  // namespace lockd
