// The calls about several keys in one step: all of them are granted, or none.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "server/reports/client_json.h"
#include "server/session/api_calls.h"
#include "server/session/hold_params.h"
#include "server/session/session_host.h"

namespace lockd {
namespace {

// What names a key where some of a set are told of.
std::string name_json(const NamedKeys& keys, const SetItem& item) {
  std::string name;
  append_json_string(name, item.key);
  if (!keys.by_items()) return name;
  JsonObject json;
  json.add("key", item.key);
  json.add("kind", kind_name(item.kind));
  return json.finish();
}

// As it was asked for.
std::string item_json(const SetItem& item) {
  JsonObject json;
  json.add("key", item.key);
  json.add("kind", kind_name(item.kind));
  if (item.kind == Kind::semaphore) json.add("limit", item.limit);
  add_share(json, item);
  return json.finish();
}

// What was granted, as it was asked for.
std::string granted_json(const NamedKeys& keys) {
  JsonArray names;
  for (const SetItem& item : keys.items()) {
    names.add_json(keys.by_items() ? item_json(item) : name_json(keys, item));
  }
  return names.finish();
}

// What was renewed: who renews does not say what it was granted.
std::string renewed_json(const NamedKeys& keys) {
  JsonArray names;
  for (const SetItem& item : keys.items()) names.add_json(name_json(keys, item));
  return names.finish();
}

bool is_held_by_somebody(const SetConflict& found) { return found.conflict.holders > 0; }

// The holds that a renewal or a release names.
SetId set_of(const NamedKeys& keys, std::string_view holder, std::int64_t token) {
  return {.keys = keys.items(), .holder = holder, .fence = static_cast<Fence>(token)};
}

}  // namespace

// Before anything happens to any of them.
bool ApiCalls::refuse_names(const NamedKeys& keys, std::string& out) {
  for (const SetItem& item : keys.items()) {
    if (refuse_name(item.key, out)) return true;
  }
  session_.log().about(keys.items().front().key);
  return false;
}

void ApiCalls::acquire_all(RequestParams& params, std::string& out) {
  NamedKeys keys = NamedKeys::to_take(params);
  const Terms terms = terms_in(params);
  if (refuse_params(params, out) || refuse_names(keys, out)) return;

  std::vector<SetConflict> conflicts;
  const Answer answer =
      context_.batch.acquire_all({.keys = keys.items(),
                                  .holder = terms.holder,
                                  .ttl = lease(terms.ttl_ms),
                                  .wait = terms.wait,
                                  .note = terms.note,
                                  .peer = session_.peer().address},
                                 &context_.host.listener(), session_.id(), &conflicts);
  if (answer.outcome == Outcome::ok) return answer_grant(keys, terms.holder, answer.grant, out);
  if (answer.outcome != Outcome::queued) return refuse_all(keys, answer.outcome, conflicts, out);
  state_ = State::waiting;
  std::string first(keys.items().front().key);
  session_.set_wait({.id = answer.wait,
                     .key = std::move(first),
                     .holder = std::string(terms.holder),
                     .all = std::make_shared<const NamedKeys>(std::move(keys))});
}

void ApiCalls::end_wait_for_all(const WaitResult& result, std::string& out) {
  const ServerSession::Wait& wait = session_.wait();
  if (result.outcome == Outcome::ok) {
    return answer_grant(*wait.all, wait.holder, result.grant, out);
  }
  const auto conflicts = context_.batch.explain_all({.keys = wait.all->items(),
                                                     .holder = wait.holder,
                                                     .ttl = context_.options.default_lease_ttl});
  refuse_all(*wait.all, result.outcome, conflicts, out);
}

void ApiCalls::renew_all(RequestParams& params, std::string& out) {
  const NamedKeys keys = NamedKeys::that_are_held(params);
  const std::string_view holder = params.name("holder");
  const std::int64_t token = params.number("token", 1, kFenceMax);
  const auto ttl_ms = params.number_if_given("ttl_ms", 1, kMsMax);
  if (refuse_params(params, out) || refuse_names(keys, out)) return;

  std::optional<Duration> ttl;
  if (ttl_ms) ttl = std::chrono::milliseconds(*ttl_ms);
  const SetResult renewed = context_.batch.renew_all(set_of(keys, holder, token), ttl);
  if (renewed) {
    JsonObject json;
    json.add_json(keys.member(), renewed_json(keys));
    return answer_grant(std::move(json), holder, renewed.grant, out);
  }
  if (renewed.conflicts.empty()) return refuse_hold(renewed.outcome, out);
  const SetItem& missing = keys.items()[renewed.conflicts.front().item];
  const HttpError error = error_of(renewed.outcome);
  JsonObject json = refusal(error);
  json.add("key", missing.key);
  if (keys.by_items()) json.add("kind", kind_name(missing.kind));
  replies_.answer(error.status, json.finish(), out, advice(error));
}

void ApiCalls::release_all(RequestParams& params, std::string& out) {
  const NamedKeys keys = NamedKeys::that_are_held(params);
  const std::string_view holder = params.name("holder");
  const std::int64_t token = params.number("token", 1, kFenceMax);
  if (refuse_params(params, out) || refuse_names(keys, out)) return;

  const ReleaseSetResult result = context_.batch.release_all(set_of(keys, holder, token));
  if (!result) return refuse_hold(result.outcome, out);
  JsonArray released;
  JsonArray not_held;
  for (std::size_t i = 0; i < keys.items().size(); ++i) {
    (result.released[i] ? released : not_held).add_json(name_json(keys, keys.items()[i]));
  }
  JsonObject json;
  json.add_json("released", released.finish());
  json.add_json("not_held", not_held.finish());
  replies_.answer(200, json.finish(), out);
}

void ApiCalls::answer_grant(const NamedKeys& keys, std::string_view holder, const Grant& grant,
                            std::string& out) {
  JsonObject json;
  json.add_json(keys.member(), granted_json(keys));
  answer_grant(std::move(json), holder, grant, out);
}

std::string ApiCalls::conflicts_json(const NamedKeys& keys, Outcome outcome,
                                     const std::vector<SetConflict>& conflicts) {
  JsonArray array;
  for (const SetConflict& found : conflicts) {
    const SetItem& item = keys.items()[found.item];
    const Conflict& conflict = found.conflict;
    JsonObject json;
    json.add("key", item.key);
    json.add("kind", kind_name(item.kind));
    add_held_by(json, item.kind, item.key);
    json.add("waiters", conflict.waiters);
    const bool tells_limit = outcome == Outcome::limit_mismatch && item.kind == Kind::semaphore;
    if (tells_limit) json.add("limit", conflict.limit);
    if (found.own) json.add("own", true);
    array.add_json(json.finish());
  }
  return array.finish();
}

// With each key that is in the way, as far as any still is.
void ApiCalls::refuse_all(const NamedKeys& keys, Outcome outcome,
                          const std::vector<SetConflict>& conflicts, std::string& out) {
  HttpError error = error_of(outcome);
  if (outcome == Outcome::held && std::ranges::any_of(conflicts, &SetConflict::own)) {
    error.detail = "this holder has a part of them, or has them under several fences";
  } else if (outcome == Outcome::held && std::ranges::none_of(conflicts, is_held_by_somebody)) {
    error.detail = kWaitedFor;
  }
  JsonObject json = refusal(error);
  if (error.status == 409) json.add_json("conflicts", conflicts_json(keys, outcome, conflicts));
  replies_.answer(error.status, json.finish(), out, advice(error));
}

}  // namespace lockd
