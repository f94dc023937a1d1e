// The calls by which an admin takes from others what they have. Each is logged with who asked for
// it, from where, and why.
#include <string>
#include <string_view>
#include <utility>

#include "base/json_text.h"
#include "base/text.h"
#include "server/log.h"
#include "server/reports/client_json.h"
#include "server/session/api_calls.h"
#include "server/session/session_host.h"

namespace lockd {

// By its auth token; else it is known by where it is.
std::string ApiCalls::admin_name() const {
  const auto admin = context_.clients.status(session_.id());
  return admin && !admin->token_name.empty() ? admin->token_name : session_.peer().address;
}

// The client's own thread ends it. The answer comes when that has been done, and rests on what it
// did.
void ApiCalls::disconnect(RequestParams& params, std::string& out) {
  const std::int64_t id = params.number("client_id", 1, kSessionIdMax);
  const std::string_view reason = params.name("reason");
  if (refuse_params(params, out)) return;

  const auto client = context_.clients.status(static_cast<SessionId>(id));
  if (!client ||
      !context_.host.disconnect(session_.id(), client->id, client_json(*client).finish())) {
    return refuse({404, "not_found", "no client with this client_id is connected"}, out);
  }
  state_ = State::reporting;
  log_event(LogLevel::warn, "client disconnected by an admin",
            {{"client_id", std::to_string(client->id)},
             {"client", client->client == nullptr ? "" : client->client->name},
             {"peer", client->peer},
             {"by", admin_name()},
             {"from", session_.peer().address},
             {"reason", std::string(reason)}});
}

}  // namespace lockd
