#include "server/reports/report.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "lockd/batch.h"

namespace lockd {
namespace {

// Of each key, in a list; and of one key that was asked for by name.
constexpr std::size_t kEntriesInList = 16;
constexpr std::size_t kEntriesOfOne = 1000;
// Of a whole page: with more than that it ends before it has the keys that were asked for.
constexpr std::size_t kEntriesOfPage = 4096;
constexpr std::size_t kKeysPerStep = 64;

std::string hold_json(const HoldStatus& hold, std::int64_t now_unix_ms) {
  const std::int64_t remaining = std::max<std::int64_t>(whole_ms(hold.remaining), 0);
  JsonObject json;
  json.add("holder", hold.holder);
  json.add("token", hold.fence);
  json.add("held_ms", whole_ms(hold.held));
  json.add("ttl_ms", whole_ms(hold.ttl));
  json.add("expires_in_ms", remaining);
  json.add("expires_at_unix_ms", now_unix_ms + remaining);
  return json.finish();
}

std::string waiter_json(const WaiterStatus& waiter) {
  JsonObject json;
  json.add("holder", waiter.holder);
  json.add("waited_ms", whole_ms(waiter.waited));
  return json.finish();
}

bool is_idle(const KeyStatus& key) { return key.holders == 0 && key.waiters == 0; }

std::string key_json(const KeyStatus& key, std::int64_t now_unix_ms) {
  JsonArray holds;
  for (const HoldStatus& hold : key.holds) holds.add_json(hold_json(hold, now_unix_ms));
  JsonArray queue;
  for (const WaiterStatus& waiter : key.queue) queue.add_json(waiter_json(waiter));
  JsonObject json;
  json.add("kind", key.kind == Kind::lock ? "lock" : "semaphore");
  json.add("key", key.key);
  json.add("limit", key.limit);
  json.add("holders", key.holders);
  json.add("waiters", key.waiters);
  json.add("token", key.fence);
  if (is_idle(key)) json.add("idle_ms", whole_ms(key.idle));
  json.add_json("holds", holds.finish());
  json.add_json("queue", queue.finish());
  return json.finish();
}

bool matches(const KeyQuery& query, const KeyStatus& key) {
  return (query.with_idle || !is_idle(key)) && key.key.starts_with(query.prefix);
}

// The keys of one answer, and what they rest on.
struct Listing {
  std::vector<KeyStatus> keys;
  Position position = 0;
};

std::size_t entries(const KeyStatus& key) { return key.holds.size() + key.queue.size(); }

Listing list_one(Engine& engine, const KeyQuery& query) {
  Listing listing;
  Batch batch(engine);
  for (const Kind kind : {Kind::lock, Kind::semaphore}) {
    if (auto key = batch.status(kind, query.key, kEntriesOfOne)) listing.keys.push_back(*key);
  }
  listing.position = batch.commit();
  return listing;
}

Listing list_page(Engine& engine, const KeyQuery& query, ListPlace& place) {
  Listing listing;
  std::size_t listed = 0;
  const auto visit = [&](const KeyStatus& key) {
    if (!matches(query, key)) return;
    listing.keys.push_back(key);
    listed += entries(key);
  };
  while (!place.done && listing.keys.size() < query.keys_max && listed < kEntriesOfPage) {
    const std::size_t left = query.keys_max - listing.keys.size();
    listing.position =
        std::max(listing.position,
                 engine.list_some(place, std::min(left, kKeysPerStep), visit, kEntriesInList));
  }
  return listing;
}

Listing list_busiest(Engine& engine, const KeyQuery& query) {
  const auto longer = [](const KeyStatus& a, const KeyStatus& b) { return a.waiters > b.waiters; };
  Listing listing;
  auto& keys = listing.keys;  // a heap, the shortest queue on top
  listing.position = engine.list(
      [&](const KeyStatus& key) {
        if (!matches(query, key)) return;
        if (keys.size() == query.keys_max) {
          if (!longer(key, keys.front())) return;
          std::pop_heap(keys.begin(), keys.end(), longer);
          keys.pop_back();
        }
        keys.push_back(key);
        std::push_heap(keys.begin(), keys.end(), longer);
      },
      kEntriesInList);
  std::sort_heap(keys.begin(), keys.end(), longer);
  std::size_t listed = 0;
  std::erase_if(keys,
                [&](const KeyStatus& key) { return (listed += entries(key)) > kEntriesOfPage; });
  return listing;
}

}  // namespace

ReportPiece key_listing_json(Engine& engine, const KeyQuery& query) {
  ListPlace place = query.from;
  if (!query.key.empty() || query.by_waiters) place.done = true;  // one page
  const Listing listing = !query.key.empty() ? list_one(engine, query)
                          : query.by_waiters ? list_busiest(engine, query)
                                             : list_page(engine, query, place);
  const std::int64_t now = unix_ms_now();  // what is left of a lease was read then
  JsonArray locks;
  for (const KeyStatus& key : listing.keys) locks.add_json(key_json(key, now));
  JsonObject json;
  json.add_json("locks", locks.finish());
  if (!place.done) json.add("next", place_text(place));
  return {json.finish(), listing.position};
}

}  // namespace lockd
