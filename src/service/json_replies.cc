// The replies of the API's calls.
#include <algorithm>
#include <span>
#include <utility>

#include "base/overloaded.h"
#include "base/text.h"
#include "server/access/access.h"
#include "server/reports/client_json.h"
#include "service/json_codec.h"

namespace lockd {
namespace {

// A list of this many holds with the longest names has half the length of a line.
constexpr std::size_t kReleasedMax = 256;
constexpr std::string_view kRetryAfter = "Retry-After: 1\r\n";
// A key can be free and still be refused to a request that does not wait.
constexpr const char* kWaitedFor = "free, but the first of its queue waits for other keys too";

// The name of the engine's refusal. Refusals that depend on the call come before this.
HttpError error_of(Outcome outcome) {
  const std::string detail(describe(outcome));
  switch (outcome) {
    case Outcome::held: return {409, "held", detail};
    case Outcome::timeout: return {409, "wait_timeout", detail};
    case Outcome::expired: return {409, "expired", detail};
    case Outcome::stale: return {409, "stale_token", detail};
    case Outcome::not_holder: return {409, "not_holder", detail};
    case Outcome::limit_mismatch: return {409, "limit_mismatch", detail};
    case Outcome::mode_mismatch: return {409, "mode_mismatch", detail};
    case Outcome::permits_mismatch: return {409, "permits_mismatch", detail};
    case Outcome::max_keys: return {429, "max_locks", detail + ": see --max-locks"};
    case Outcome::max_waiters: return {429, "max_waiters", detail + ": see --max-waiters"};
    case Outcome::max_holds: return {429, "max_holds", detail + ": see --max-holds"};
    case Outcome::max_client_holds:
      return {429, "max_holds", detail + ": see --max-holds-per-client"};
    case Outcome::cancelled:
    case Outcome::closed: return {503, "draining", "the server is stopping"};
    case Outcome::not_leader: return {503, "not_leader", detail};
    case Outcome::storage:
    case Outcome::fences_exhausted: return {503, "storage", detail};
    default: return {400, "bad_request", detail};
  }
}

HttpError error_of(const Rejected& rejected) {
  using Reason = Rejected::Reason;
  switch (rejected.reason) {
    case Reason::denied: return {403, "denied", rejected.detail};
    case Reason::draining: return {503, "draining", "the server is stopping"};
    case Reason::too_many_reports:
      return {503, "busy", "too many listings wait: ask again in a second"};
    case Reason::too_many_watchers:
      return {429, "max_watchers", "as many watch as may: see --max-watchers"};
    case Reason::too_many_subscriptions:
      return {429, "max_subscriptions",
              "this connection has as many as --max-subscriptions allows, or all together "
              "have a million, with the nodes of their patterns"};
    case Reason::already_streaming:
      return {409, "already_streaming", "a connection has one stream, until it closes"};
    case Reason::already_listening:
      return {409, "already_listening", "this connection listens by `listen`"};
    case Reason::no_history: return {404, "not_found", "no history is kept: see --history"};
    case Reason::no_metrics: return {404, "not_found", "metrics are off: see --metrics"};
    case Reason::no_cluster: return {404, "not_found", "this server is in no cluster"};
    case Reason::no_such_client:
      return {404, "not_found", "no client with this client_id is connected"};
    case Reason::no_such_server:
      return {404, "not_found", "no server of this name was heard of within a minute"};
    case Reason::server_not_ready: return {409, "not_ready", rejected.detail};
  }
  return {};
}

JsonObject refusal_json(const HttpError& error) {
  JsonObject json;
  json.add("error", error.code);
  json.add("detail", error.detail);
  return json;
}

JsonReply refused(const HttpError& error, std::string body, std::string fields) {
  return {.status = error.status,
          .body = std::move(body),
          .fields = std::move(fields),
          .error = std::string(error.code)};
}

JsonReply ok(JsonObject json, int status = 200) {
  return {.status = status, .body = json.finish()};
}

// How much of the key was taken, as the request said it.
std::string amount_json(const KeyItem& item) {
  JsonObject json;
  json.add("key", item.key);
  json.add("kind", kind_name(item.kind));
  if (item.kind == Kind::semaphore) json.add("limit", item.limit);
  add_share(json, item);
  return json.finish();
}

void add_held_by(JsonObject& json, Kind kind, const HeldBy& hold, std::int64_t unix_ms) {
  JsonObject held_by;
  held_by.add("holder", hold.holder);
  held_by.add_if_known("client", hold.client);
  held_by.add_if_known("peer", hold.peer);
  held_by.add_if_known("note", hold.note);
  held_by.add("fence", hold.fence);
  if (kind == Kind::lock) held_by.add("mode", mode_name(hold.mode));
  held_by.add("since_unix_ms", unix_ms - whole_ms(hold.held));
  held_by.add("expires_at_unix_ms", unix_ms + whole_ms(hold.remaining));
  json.add_json("held_by", held_by.finish());
}

}  // namespace

std::string advice_for(const HttpError& error, const LeaderAddress* leader) {
  if (error.status != 503) return {};
  if (leader == nullptr) return std::string(kRetryAfter);
  return "X-Lockd-Leader: " + leader->line + "\r\nX-Lockd-Leader-Http: " + leader->http + "\r\n" +
         std::string(kRetryAfter);
}

JsonReply json_refusal(const HttpError& error, std::string fields) {
  return refused(error, refusal_json(error).finish(), std::move(fields));
}

std::string signal_json(const Signal& signal) {
  JsonObject json;
  json.add("channel", signal.channel());
  json.add("payload", as_utf8(signal.payload()));
  return json.finish();
}

std::string missed_json(std::uint64_t count) {
  JsonObject json;
  json.add("count", count);
  return json.finish();
}

JsonReply JsonCodec::write(const Reply& reply, Times times) const {
  return std::visit(
      Overloaded{
          [&](const Granted& r) { return write_grant(r.grant, /*is_renewal=*/false, times); },
          [&](const Renewed& r) { return write_grant(r.grant, /*is_renewal=*/true, times); },
          [&](const Released& r) { return write_released(r); },
          [&](const Refused& r) { return write_refusal(r, times); },
          [&](const Rejected& r) { return write_rejection(r); },
          [&](const FenceFound& r) {
            JsonObject json;
            json.add("key", std::get<ReadFence>(call_).key);
            json.add("held", r.status.held);
            json.add("token", r.status.fence);
            return ok(std::move(json));
          },
          [&](const SignalSent& r) {
            JsonObject json;
            json.add("delivered", r.delivered);
            return ok(std::move(json));
          },
          [&](const Revoked& r) { return write_revoked(r.result); },
          [&](const Disconnected& r) { return ok(client_json(*r.client)); },
          [&](const ClusterReport& r) { return JsonReply{.body = r.json}; },
          [&](const SnapshotBegun& r) {
            JsonObject json;
            json.add("base", to_text(r.base));
            json.add("head", to_text(r.head));
            return ok(std::move(json), 202);
          },
          [&](const TransferBegun& r) {
            JsonObject json;
            json.add("node_id", std::get<TransferLeadership>(call_).node);
            json.add("epoch", r.epoch);
            return ok(std::move(json), r.already_leads ? 200 : 202);
          },
          [&](const Health& r) {
            JsonObject json;
            json.add("status", r.problem.empty() ? "ok" : r.problem);
            return ok(std::move(json), r.problem.empty() ? 200 : 503);
          },
          [&](const CallerDescription& r) {
            return JsonReply{.body = whoami_json(*r.permit, *r.peer)};
          },
          [&](const Done&) {
            JsonObject json;
            const Resize& call = std::get<Resize>(call_);
            json.add("key", call.key);
            json.add("limit", call.limit);
            return ok(std::move(json));
          },
          [](const auto&) { return JsonReply{}; },
      },
      reply);
}

std::string_view JsonCodec::holder() const {
  if (const auto* call = std::get_if<Acquire>(&call_)) return call->owner.name;
  return std::get<Renew>(call_).hold.holder.name();
}

// What remains is added to the wall clock as it is now, so steps of it since the grant do not
// count.
JsonReply JsonCodec::write_grant(const Grant& grant, bool is_renewal, Times times) const {
  JsonObject json;
  if (shape_ == Shape::key) {
    json.add("key", is_renewal ? std::get<Renew>(call_).hold.keys.front().key
                               : std::get<Acquire>(call_).keys.front().key);
  } else {
    json.add_json(shape_ == Shape::items ? "items" : "keys", keys_json(!is_renewal));
  }
  const std::int64_t left_ms = whole_ms(std::max(grant.expires_at - times.now, Duration::zero()));
  json.add("holder", holder());
  json.add("token", grant.fence);
  json.add("ttl_ms", whole_ms(grant.ttl));
  json.add("expires_in_ms", left_ms);
  json.add("expires_at_unix_ms", times.unix_ms + left_ms);
  return ok(std::move(json));
}

// As the request named the key.
std::string JsonCodec::name_json(const KeyItem& item) const {
  std::string name;
  append_json_string(name, item.key);
  if (shape_ != Shape::items) return name;
  JsonObject json;
  json.add("key", item.key);
  json.add("kind", kind_name(item.kind));
  return json.finish();
}

std::string JsonCodec::keys_json(bool with_amounts) const {
  JsonArray keys;
  for (const KeyItem& item : items_) {
    keys.add_json(with_amounts && shape_ == Shape::items ? amount_json(item) : name_json(item));
  }
  return keys.finish();
}

JsonReply JsonCodec::write_released(const Released& released) const {
  JsonObject json;
  if (shape_ == Shape::key) {
    json.add("key", std::get<Release>(call_).hold.keys.front().key);
    json.add("released", true);
    return ok(std::move(json));
  }
  JsonArray ended;
  JsonArray not_held;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    (released.result.has_released(i) ? ended : not_held).add_json(name_json(items_[i]));
  }
  json.add_json("released", ended.finish());
  json.add_json("not_held", not_held.finish());
  return ok(std::move(json));
}

JsonReply JsonCodec::write_rejection(const Rejected& rejected) const {
  const HttpError error = error_of(rejected);
  return json_refusal(error, advice_for(error, nullptr));
}

JsonReply JsonCodec::write_refusal(const Refused& refusal, Times times) const {
  const bool is_unheld = refusal.outcome == Outcome::expired || refusal.outcome == Outcome::stale ||
                         refusal.outcome == Outcome::not_holder;
  // The release of a list of one key that is not held lists that key.
  if (is_unheld && shape_ != Shape::key && std::holds_alternative<Release>(call_)) {
    return write_released({});
  }
  HttpError error = error_of(refusal.outcome);
  if (std::holds_alternative<Revoke>(call_) && refusal.outcome == Outcome::stale) {
    error.detail = "nobody holds it under this fence";
  } else if (std::holds_alternative<Resize>(call_) && refusal.outcome == Outcome::expired) {
    error.detail = "nobody holds it or waits for it";
  }
  const bool is_acquire = std::holds_alternative<Acquire>(call_);
  const auto has_own = [](const KeyInTheWay& one) { return one.conflict.own; };
  const auto is_held = [](const KeyInTheWay& one) { return one.conflict.holders > 0; };
  if (is_acquire && refusal.outcome == Outcome::held) {
    if (std::ranges::any_of(refusal.in_the_way, has_own)) {
      error.detail = "this holder has a part of them, or has them under several fences";
    } else if (std::ranges::none_of(refusal.in_the_way, is_held)) {
      error.detail = kWaitedFor;
    }
  }
  JsonObject json = refusal_json(error);
  if (is_acquire && error.status == 409) {
    if (shape_ == Shape::key) {
      add_conflict(json, refusal, times);
    } else {
      json.add_json("conflicts", conflicts_json(refusal, times));
    }
  }
  if (refusal.missing && shape_ != Shape::key) {
    const KeyItem& missing = items_[*refusal.missing];
    json.add("key", missing.key);
    if (shape_ == Shape::items) json.add("kind", kind_name(missing.kind));
  }
  return refused(error, json.finish(), advice_for(error, refusal.leader.get()));
}

void JsonCodec::add_conflict(JsonObject& json, const Refused& refusal, Times times) const {
  if (refusal.in_the_way.empty()) return;
  const auto& [conflict, held_by] = refusal.in_the_way.front();
  const Kind kind = std::get<Acquire>(call_).keys.front().kind;
  if (held_by) add_held_by(json, kind, *held_by, times.unix_ms);
  const bool names_others = refusal.outcome == Outcome::held || refusal.outcome == Outcome::timeout;
  if (names_others && conflict.holders > 0) {
    if (kind == Kind::semaphore) {
      json.add("limit", conflict.limit);
      json.add("permits", conflict.permits);
    }
    json.add("holders", conflict.holders);
    json.add("waiters", conflict.waiters);
  } else if (names_others && conflict.waiters > 0) {
    json.add("waiters", conflict.waiters);
  }
  if (refusal.outcome == Outcome::limit_mismatch && conflict.limit > 0) {
    json.add("limit", conflict.limit);
  }
}

std::string JsonCodec::conflicts_json(const Refused& refusal, Times times) const {
  JsonArray array;
  for (const auto& [conflict, held_by] : refusal.in_the_way) {
    const KeyItem& item = items_[conflict.item];
    JsonObject json;
    json.add("key", item.key);
    json.add("kind", kind_name(item.kind));
    if (held_by) add_held_by(json, item.kind, *held_by, times.unix_ms);
    json.add("waiters", conflict.waiters);
    const bool shows_limit =
        refusal.outcome == Outcome::limit_mismatch && item.kind == Kind::semaphore;
    if (shows_limit) json.add("limit", conflict.limit);
    if (conflict.own) json.add("own", true);
    array.add_json(json.finish());
  }
  return array.finish();
}

JsonReply JsonCodec::write_revoked(const RevokeResult& revoked) const {
  const std::size_t listed = std::min(revoked.holds.size(), kReleasedMax);
  JsonArray released;
  for (const HoldStatus& hold : std::span(revoked.holds).first(listed)) {
    JsonObject json;
    json.add("holder", holder_text(hold, clients_));
    json.add("token", hold.fence);
    add_share(json, hold);
    json.add("held_ms", whole_ms(hold.held));
    add_client(json, hold, &clients_);
    released.add_json(json.finish());
  }
  JsonObject json;
  json.add("key", std::get<Revoke>(call_).key);
  json.add_json("released", released.finish());
  if (revoked.count > listed) json.add("count", revoked.count);
  return ok(std::move(json));
}

}  // namespace lockd
