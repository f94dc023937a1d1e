// The parameters of the API's calls.
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/pattern.h"
#include "base/text.h"
#include "server/server_history.h"
#include "server/session/event_feed.h"
#include "service/json_codec.h"

namespace lockd {
namespace {

// The longest time that a request may name: see kDurationMax.
constexpr std::int64_t kMsMax = 9'223'372'036'000;
constexpr std::int64_t kPageMax = 1000;
constexpr std::int64_t kPageDefault = 100;

Duration of_ms(std::int64_t ms) { return std::chrono::milliseconds(ms); }

std::optional<Duration> duration_if_given(RequestParams& params, std::string_view member) {
  const auto ms = params.number_if_given(member, 1, kMsMax);
  return ms ? std::optional(of_ms(*ms)) : std::nullopt;
}

Kind kind_in(RequestParams& params) {
  const std::string_view kind = params.text_if_given("kind").value_or("lock");
  if (kind != "lock" && kind != "semaphore") params.refuse("kind", "must be lock or semaphore");
  return kind == "semaphore" ? Kind::semaphore : Kind::lock;
}

Mode mode_in(RequestParams& params) {
  const std::string_view mode = params.text_if_given("mode").value_or("exclusive");
  if (mode != "exclusive" && mode != "shared") {
    params.refuse("mode", "must be exclusive or shared");
  }
  return mode == "shared" ? Mode::shared : Mode::exclusive;
}

// A key, and how much of it to take.
KeyItem item_in(RequestParams& params, Kind kind) {
  const std::string_view key = params.name("key");
  if (kind == Kind::lock) return {key, kind, mode_in(params)};
  const std::int64_t limit = params.number("limit", 1, kLimitMax);
  const std::int64_t permits = params.number_if_given("permits", 1, limit).value_or(1);
  return {key, kind, Mode::exclusive, static_cast<std::uint32_t>(limit),
          static_cast<std::uint32_t>(permits)};
}

// A key that is held. The request may repeat how much was taken; it changes nothing.
KeyItem held_item_in(RequestParams& params) {
  const KeyItem item(params.name("key"), kind_in(params));
  mode_in(params);
  const auto limit = params.number_if_given("limit", 1, kLimitMax);
  params.number_if_given("permits", 1, limit.value_or(kLimitMax));
  return item;
}

SessionId client_id_in(RequestParams& params) {
  return static_cast<SessionId>(params.number_if_given("client_id", 1, kSessionIdMax).value_or(0));
}

}  // namespace

HttpError JsonCodec::read(HttpCall call, std::string_view channel, RequestParams params) {
  params_ = std::move(params);
  shape_ = Shape::key;
  items_.clear();
  call_ = read_call(call, channel);
  return params_.error();
}

Call JsonCodec::read_call(HttpCall call, std::string_view channel) {
  using What = ReportRequest::What;
  switch (call) {
    case HttpCall::acquire: return read_acquire(Kind::lock);
    case HttpCall::semaphore_acquire: return read_acquire(Kind::semaphore);
    case HttpCall::renew:
    case HttpCall::semaphore_renew: {
      const HoldId hold = read_hold(call == HttpCall::renew ? Kind::lock : Kind::semaphore);
      return Renew{hold, duration_if_given(params_, "ttl_ms")};
    }
    case HttpCall::release: return Release{read_hold(Kind::lock)};
    case HttpCall::semaphore_release: return Release{read_hold(Kind::semaphore)};
    case HttpCall::fence: return ReadFence{params_.name("key")};
    case HttpCall::publish: return read_publish(channel);
    case HttpCall::listen: return read_listen();
    case HttpCall::events: return WatchEvents{params_.text_if_given("prefix").value_or("")};
    case HttpCall::locks: return read_key_listing();
    case HttpCall::clients: return read_client_listing();
    case HttpCall::history: return read_history();
    case HttpCall::stats:
      return read_report({.what = What::stats, .shows_clients = true, .refusable = true});
    case HttpCall::overview: return read_report({.what = What::overview});
    case HttpCall::metrics: {  // of this server alone
      ReadReport metrics = read_report({.what = What::metrics});
      metrics.local = true;
      return metrics;
    }
    case HttpCall::admin_release: return read_revoke();
    case HttpCall::admin_disconnect:
      return Disconnect{static_cast<SessionId>(params_.number("client_id", 1, kSessionIdMax)),
                        params_.name("reason")};
    case HttpCall::admin_resize: {
      const std::string_view key = params_.name("key");
      const auto limit = static_cast<std::uint32_t>(params_.number("limit", 1, kLimitMax));
      return Resize{key, limit, params_.name_if_given("reason")};
    }
    case HttpCall::cluster: return InspectCluster{};
    case HttpCall::cluster_snapshot: return BeginSnapshot{};
    case HttpCall::cluster_transfer: return TransferLeadership{params_.name("node")};
    case HttpCall::live: return CheckHealth{CheckHealth::Of::process};
    case HttpCall::ready: return CheckHealth{CheckHealth::Of::server};
    case HttpCall::leader: return CheckHealth{CheckHealth::Of::leader};
    case HttpCall::whoami: return DescribeCaller{};
    case HttpCall::openapi:
    case HttpCall::page:
    case HttpCall::none: break;
  }
  return Ping{};
}

Duration JsonCodec::lease(std::optional<std::int64_t> ttl_ms) const {
  return ttl_ms ? of_ms(*ttl_ms) : options_.default_lease_ttl;
}

Acquire JsonCodec::read_acquire(Kind kind) {
  Acquire call{.keys = read_keys(kind, /*takes=*/true), .explain = true};
  call.owner.name = params_.name("holder");
  call.ttl = lease(params_.number_if_given("ttl_ms", 1, kMsMax));
  call.wait = of_ms(params_.number_if_given("wait_ms", 0, kMsMax).value_or(0));
  call.note = params_.text_if_given("note").value_or("");
  if (!is_plain_text(call.note, kNoteSizeMax)) {
    params_.refuse("note", "must be at most 256 bytes of UTF-8 without control characters");
  }
  return call;
}

HoldId JsonCodec::read_hold(Kind kind) {
  const KeyItems keys = read_keys(kind, /*takes=*/false);
  const std::string_view holder = params_.name("holder");
  const std::int64_t token = params_.number("token", 1, kFenceMax);
  return {.keys = keys, .holder = holder, .fence = static_cast<Fence>(token)};
}

// One key as `key`; several as `keys`, which are locks, or as `items`.
KeyItems JsonCodec::read_keys(Kind kind, bool takes) {
  const bool has_items = params_.has("items");
  const bool has_several = kind == Kind::lock && (params_.has("keys") || has_items);
  if (!has_several) return takes ? item_in(params_, kind) : KeyItem(params_.name("key"), kind);
  shape_ = has_items ? Shape::items : Shape::keys;
  if (params_.has("key")) params_.refuse("key", "cannot be given together with several");
  if (has_items && params_.has("keys")) {
    params_.refuse("keys", "cannot be given together with items");
  }
  if (has_items) {
    for (RequestParams& item : params_.objects("items")) {
      items_.push_back(takes ? item_in(item, kind_in(item)) : held_item_in(item));
    }
  } else {
    const Mode mode = takes ? mode_in(params_) : Mode::exclusive;
    for (const std::string_view key : params_.names("keys")) {
      items_.emplace_back(key, Kind::lock, mode);
    }
  }
  refuse_duplicates();
  return items_;
}

void JsonCodec::refuse_duplicates() {
  const std::size_t twice = KeyItems(items_).find_duplicate();
  if (twice == items_.size()) return;
  params_.refuse(shape_ == Shape::items ? "items" : "keys",
                 "must be different: \"" + std::string(items_[twice].key) + "\" is there twice");
}

Publish JsonCodec::read_publish(std::string_view channel) {
  const std::string_view payload = params_.text("payload");
  if (!is_channel(channel)) {
    params_.refuse("the channel", "must be a name without wildcards, of at most 32 tokens");
  }
  if (!is_payload(channel, payload)) {
    params_.refuse("payload", "must not be blank, nor have line feeds, nor be too long for a line");
  }
  return {channel, payload};
}

Listen JsonCodec::read_listen() {
  const std::string_view pattern = params_.text("pattern");
  const std::string_view group = params_.text_if_given("group").value_or("");
  if (!is_pattern(pattern)) {
    params_.refuse(
        "pattern",
        "must be a name of at most 32 tokens, in which * and > are whole tokens, > the last");
  }
  if (!group.empty() && !is_name(group)) {
    params_.refuse("group", "must be 1 to 256 bytes of UTF-8 without control characters");
  }
  return {pattern, group, /*as_stream=*/true};
}

Revoke JsonCodec::read_revoke() {
  Revoke call{.key = params_.name("key"), .kind = kind_in(params_)};
  const auto token = params_.number_if_given("token", 1, kFenceMax);
  const bool all = params_.truth("all");
  call.reason = params_.name("reason");
  if (token.has_value() == all) {
    params_.refuse("token", "must be given, or all be true: one of them");
  }
  if (token) call.fence = static_cast<Fence>(*token);
  return call;
}

ReadReport JsonCodec::read_report(ReportRequest request) {
  return {.report = std::make_shared<const ReportRequest>(std::move(request)),
          .local = params_.truth("local")};
}

ReadReport JsonCodec::read_key_listing() {
  KeyQuery query;
  query.prefix = params_.text_if_given("prefix").value_or("");
  query.contains = params_.text_if_given("contains").value_or("");
  query.key = params_.name_if_given("key");
  query.holder = params_.name_if_given("holder");
  query.client_id = client_id_in(params_);
  const auto limit = params_.number_if_given("limit", 1, kPageMax);
  query.keys_max = static_cast<std::uint32_t>(limit.value_or(kPageDefault));
  if (limit) query.entries_max = static_cast<std::size_t>(*limit);
  query.with_idle = params_.truth("idle");
  const bool certain = params_.truth("certain");
  if (const auto order = params_.text_if_given("order")) {
    query.order = parse_key_order(*order).value_or(KeyOrder::none);
    if (query.order == KeyOrder::none) {
      params_.refuse("order", "must be waiters, longest_wait or longest_hold");
    }
  }
  if (const auto after = params_.text_if_given("after")) {
    if (!parse_place(*after, &query.from)) {
      params_.refuse("after", "must be the `next` of an earlier page");
    }
  }
  ReadReport call =
      read_report({.what = ReportRequest::What::keys, .keys = std::move(query), .refusable = true});
  call.certain = certain;
  return call;
}

ReadReport JsonCodec::read_client_listing() {
  ClientQuery query;
  query.prefix = params_.text_if_given("prefix").value_or("");
  query.clients_max = static_cast<std::uint32_t>(
      params_.number_if_given("limit", 1, kPageMax).value_or(kPageDefault));
  if (const auto after = params_.text_if_given("after")) {
    const auto id = parse_whole(*after, 1, kSessionIdMax);
    if (!id) params_.refuse("after", "must be the `next` of an earlier page");
    query.after = id.value_or(0);
  }
  return read_report(
      {.what = ReportRequest::What::clients, .clients = std::move(query), .refusable = true});
}

ReadReport JsonCodec::read_history() {
  HistoryRequest request;
  HistoryQuery& query = request.of_keys;
  query.key = params_.name_if_given("key");
  query.holder = params_.name_if_given("holder");
  query.client = params_.name_if_given("client");
  query.session = client_id_in(params_);
  request.since_unix_ms = params_.number_if_given("since_unix_ms", 0, kMsMax).value_or(0);
  query.events_max = static_cast<std::size_t>(
      params_.number_if_given("limit", 1, kPageMax).value_or(kPageDefault));
  if (const auto event = params_.text_if_given("event")) {
    request.event = *event;
    query.type = key_event_type(request.event);
    if (!query.type && !server_event_type(request.event)) {
      params_.refuse("event", "must be the name of an event, such as granted or expired");
    }
  }
  return read_report(
      {.what = ReportRequest::What::history, .history = std::move(request), .refusable = true});
}

}  // namespace lockd
