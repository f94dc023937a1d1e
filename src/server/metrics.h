// The counters of the whole server as Prometheus reads them: GET /metrics.
//
// The hot path counts into plain numbers of its own (Figures under a shard's lock, WorkerFigures of
// one thread each); they are summed up here, when somebody asks.
#pragma once

#include <string>

namespace lockd {

struct Shared;

std::string metrics_text(Shared& shared);

}  // namespace lockd
