#include "core/table_limits.h"

namespace lockd {
namespace {

// A session has identified its client; for a named holder the request does.
ClientView client_view(const KeyRequest& request) {
  if (!request.holder.is_secret()) return {{}, request.peer, request.note};
  const Session* const session = request.holder.session();
  return session == nullptr || session->client == nullptr ? ClientView{} : *session->client;
}

}  // namespace

void TableLimits::record_refusal(const KeyRequest& request, const Key* key, Outcome why, Time now) {
  stats_.record_refusal({.kind = request.kind,
                         .key = request.key,
                         .holder = request.holder,
                         .client = client_view(request),
                         .limit = request.limit,
                         .takes = takes_of(request),
                         .ttl = request.ttl},
                        key, why, now);
}

}  // namespace lockd
