// The calls by which an admin takes from others what they have. Each is logged, and in the history,
// with who asked for it, from where, and why.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_text.h"
#include "base/text.h"
#include "server/log.h"
#include "server/reports/client_json.h"
#include "server/session/api_calls.h"
#include "server/session/hold_params.h"
#include "server/session/session_host.h"

namespace lockd {
namespace {

// Of what was released so many are listed: with the longest names that is half a line's length.
constexpr std::size_t kReleasedMax = 256;

}  // namespace

// "ops from 10.0.0.7:51234": by its auth token or certificate, and where it is.
std::string ApiCalls::admin_name() const {
  const std::string& name = session_.permit()->name;
  const std::string& peer = session_.peer().address;
  const std::string from = name + " from " + peer;
  return name.empty() || from.size() > kHolderSizeMax ? peer : from;
}

// Ends holds against their holders' will.
void ApiCalls::revoke(RequestParams& params, std::string& out) {
  const std::string_view key = params.name("key");
  const Kind kind = kind_in(params);
  const auto token = params.number_if_given("token", 1, kFenceMax);
  const bool all = params.truth("all");
  const std::string_view reason = params.name("reason");
  if (token.has_value() == all)
    params.refuse("token", "must be given, or all be true: one of them");
  if (refuse_params(params, out) || refuse_name(key, out)) return;
  session_.log().about(key);

  const std::string by = admin_name();
  RevokeRequest request{.key = key, .kind = kind, .reason = reason, .by = by};
  if (token) request.fence = static_cast<Fence>(*token);
  const RevokeResult revoked = context_.batch.revoke(request);
  if (revoked.outcome == Outcome::stale) {
    return refuse({409, "stale_token", "nobody holds it under this fence"}, out);
  }
  if (!revoked) return refuse_hold(revoked.outcome, out);
  const HoldStatus& first = revoked.holds.front();
  log_event(LogLevel::warn, "forced end",
            {{"key", key},
             {"holds", revoked.count},
             {"holder", first.holder},
             {"client", first.client == nullptr ? "" : first.client->name},
             {"fence", first.fence},
             {"held_ms", whole_ms(first.held)},
             {"by", by},
             {"reason", reason}});
  const std::size_t listed = std::min(revoked.holds.size(), kReleasedMax);
  JsonArray released;
  for (const HoldStatus& hold : std::span(revoked.holds).first(listed)) {
    JsonObject json;
    json.add("holder", holder_text(hold, context_.clients));
    json.add("token", hold.fence);
    add_share(json, hold);
    json.add("held_ms", whole_ms(hold.held));
    add_client(json, hold, &context_.clients);
    released.add_json(json.finish());
  }
  JsonObject json;
  json.add("key", key);
  json.add_json("released", released.finish());
  if (revoked.count > listed) json.add("count", revoked.count);
  replies_.answer(200, json.finish(), out);
}

void ApiCalls::resize(RequestParams& params, std::string& out) {
  const std::string_view key = params.name("key");
  const auto limit = static_cast<std::uint32_t>(params.number("limit", 1, kLimitMax));
  const std::string_view reason = params.name_if_given("reason");
  if (refuse_params(params, out) || refuse_name(key, out)) return;
  session_.log().about(key);

  const std::string by = admin_name();
  const Outcome outcome = context_.batch.resize(key, limit, reason, by);
  if (outcome == Outcome::expired) {
    return refuse({409, "expired", "nobody holds it or waits for it"}, out);
  }
  if (outcome != Outcome::ok) return refuse_hold(outcome, out);
  log_event(LogLevel::warn, "resized",
            {{"key", key}, {"limit", limit}, {"by", by}, {"reason", reason}});
  JsonObject json;
  json.add("key", key);
  json.add("limit", limit);
  replies_.answer(200, json.finish(), out);
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
  const std::string by = admin_name();
  const std::string name = client->client == nullptr ? "" : client->client->name;
  log_event(LogLevel::warn, "client disconnected by an admin",
            {{"client_id", client->id},
             {"client", name},
             {"peer", client->peer},
             {"by", by},
             {"reason", reason}});
  if (context_.history == nullptr) return;
  context_.history->add({.type = ServerEvent::Type::kicked,
                         .client_id = client->id,
                         .protocol = name_of(client->protocol),
                         .peer = client->peer,
                         .client = name,
                         .reason = std::string(reason),
                         .by = by});
}

}  // namespace lockd
