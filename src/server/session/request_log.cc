#include "server/session/request_log.h"

#include <utility>

#include "server/reports/report.h"

namespace lockd {

void RequestLog::end(SessionId client, std::string_view outcome, Time now) {
  const std::unique_ptr<Request> ended = std::move(under_way_);
  LogFields fields{{"client_id", client}, {"request", ended->request}};
  if (!ended->key.empty()) fields.emplace_back("key", ended->key);
  if (ended->fence != 0) fields.emplace_back("fence", ended->fence);
  fields.emplace_back("outcome", ended->outcome.empty() ? outcome : ended->outcome);
  fields.emplace_back("took_us", whole_us(now - ended->since));
  log_event(LogLevel::debug, "request", fields);
}

}  // namespace lockd
