#include "service/request_log.h"

#include <utility>

#include "base/overloaded.h"
#include "server/reports/report.h"

namespace lockd {

void RequestLog::note_subject(const Call& call) {
  Request& request = *under_way_;
  const auto hold = [&](const HoldId& id) {
    request.subject = id.keys.front().key;
    request.fence = id.fence;
  };
  std::visit(Overloaded{
                 [&](const Acquire& c) { request.subject = c.keys.front().key; },
                 [&](const Enqueue& c) { request.subject = c.key.key; },
                 [&](const AwaitTurn& c) { request.subject = c.key; },
                 [&](const Renew& c) { hold(c.hold); },
                 [&](const Release& c) { hold(c.hold); },
                 [&](const ReadFence& c) { request.subject = c.key; },
                 [&](const Publish& c) { request.subject = c.channel; },
                 [&](const Listen& c) { request.subject = c.pattern; },
                 [&](const Unlisten& c) { request.subject = c.pattern; },
                 [&](const Revoke& c) { request.subject = c.key; },
                 [&](const Resize& c) { request.subject = c.key; },
                 [&](const Identify& c) { request.subject = c.name; },
                 [](const auto&) {},
             },
             call);
}

void RequestLog::write(std::string_view outcome) {
  const std::unique_ptr<Request> ended = std::move(under_way_);
  LogFields fields{{"client_id", client_}, {"request", ended->name}};
  if (!ended->subject.empty()) fields.emplace_back("key", ended->subject);
  if (ended->fence != 0) fields.emplace_back("fence", ended->fence);
  fields.emplace_back("outcome", ended->outcome.empty() ? outcome : ended->outcome);
  fields.emplace_back("took_us", whole_us(engine_.now() - ended->since));
  log_event(LogLevel::debug, "request", fields);
}

}  // namespace lockd
