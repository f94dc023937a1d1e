#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "base/version.h"
#include "server/reports/report.h"
#include "server/server_context.h"
#include "server/session/event_feed.h"
#include "server/settings/option_table.h"

namespace lockd {
namespace {

struct Shown {
  Time at;
  std::string json;
};

std::string with_name(KeyEventJson shown) {
  std::string json = R"({"event":")";
  json += shown.event;
  json += "\",";
  json += std::string_view(shown.data).substr(1);
  return json;
}

std::string server_event_json(const ServerEvent& event, std::int64_t at_unix_ms) {
  JsonObject json;
  json.add("event", event_name(event.type));
  json.add("at_unix_ms", at_unix_ms);
  if (event.type == ServerEvent::Type::started) {
    json.add("version", kVersion);
    json.add("recovered_keys", event.keys);
    json.add("recovered_holds", event.holds);
  }
  if (event.client_id != 0) json.add("client_id", event.client_id);
  json.add_if_known("protocol", event.protocol);
  json.add_if_known("client", event.client);
  json.add_if_known("peer", event.peer);
  json.add_if_known("note", event.note);
  json.add_if_known("reason", event.reason);
  json.add_if_known("by", event.by);
  return json.finish();
}

// What is about no key, and nobody's hold.
bool matches(const HistoryRequest& request, const HistoryQuery& query, const ServerEvent& event) {
  if (!query.key.empty() || !query.holder.empty() || !query.prefixes.empty()) return false;
  if (event.at < query.since) return false;
  if (!request.event.empty() && event_name(event.type) != request.event) return false;
  if (query.session != 0 && event.client_id != query.session) return false;
  return query.client.empty() || event.client == query.client;
}

// Whether an event of a key can be called that.
bool is_about_keys(const HistoryRequest& request) {
  return request.event.empty() || request.of_keys.type.has_value();
}

}  // namespace

ReportPiece history_report(ServerContext& shared, const HistoryRequest& request,
                           const PermitPtr& confined_to) {
  const Time now = shared.engine.now();
  const std::int64_t now_unix_ms = unix_ms_now();
  const auto unix_ms_of = [&](Time at) { return now_unix_ms - whole_ms(now - at); };
  HistoryQuery query = request.of_keys;
  if (confined_to != nullptr) query.prefixes = confined_to->prefixes;
  const Duration since_start = now - Time{};
  // An event's time is told by two clocks, and may differ by a millisecond from one reply to the
  // next: whoever asks for what followed an event must not miss it.
  const std::int64_t from_ms = now_unix_ms - request.since_unix_ms + 2;
  if (from_ms < 0) query.since = Time::never();
  if (from_ms >= 0 && from_ms < whole_ms(since_start))
    query.since = now - std::chrono::milliseconds(from_ms);

  std::vector<Shown> shown;
  Position position = 0;
  if (is_about_keys(request)) {
    position = shared.engine.history(query, [&](const KeyEvent& event) {
      shown.push_back({event.at, with_name(show(event, unix_ms_of(event.at), &shared.clients))});
    });
  }
  const auto matching = [&](const ServerEvent& e) { return matches(request, query, e); };
  for (const auto& event : shared.history.read(matching, query.events_max)) {
    shown.push_back({event->at, server_event_json(*event, unix_ms_of(event->at))});
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const Shown& a, const Shown& b) { return a.at > b.at; });
  JsonArray events;
  for (std::size_t i = 0; i < std::min(shown.size(), query.events_max); ++i) {
    events.add_json(shown[i].json);
  }
  JsonObject json;
  json.add_json("events", events.finish());
  const std::uint64_t dropped = shared.history_dropped();
  if (dropped > 0) json.add("dropped", dropped);
  return {json.finish(), position};
}

}  // namespace lockd
