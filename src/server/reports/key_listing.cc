#include "server/reports/report.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "lockd/batch.h"
#include "server/reports/client_json.h"

namespace lockd {
namespace {

// Of each key, in a list.
constexpr std::size_t kEntriesInList = 16;
// Of a whole page: with more than that it ends before it has the keys that were asked for.
constexpr std::size_t kEntriesOfPage = 4096;
constexpr std::size_t kListedKeysPerStep = 64;
// Behind all, where an order goes by ages.
constexpr std::int64_t kNobody = std::numeric_limits<std::int64_t>::min();

std::string hold_json(const HoldStatus& hold, const ClientRegistry& clients,
                      std::int64_t now_unix_ms) {
  const std::int64_t remaining = std::max<std::int64_t>(whole_ms(hold.remaining), 0);
  JsonObject json;
  json.add("holder", holder_text(hold, clients));
  json.add("token", hold.fence);
  add_share(json, hold);
  json.add("held_ms", whole_ms(hold.held));
  json.add("ttl_ms", whole_ms(hold.ttl));
  json.add("expires_in_ms", remaining);
  json.add("expires_at_unix_ms", now_unix_ms + remaining);
  add_client(json, hold, &clients);
  return json.finish();
}

std::string waiter_json(const WaiterStatus& waiter, const ClientRegistry& clients) {
  JsonObject json;
  json.add("holder", holder_text(waiter, clients));
  add_share(json, waiter);
  if (waiter.keys > 1) json.add("keys", waiter.keys);
  json.add("waited_ms", whole_ms(waiter.waited));
  add_client(json, waiter, &clients);
  return json.finish();
}

bool is_idle(const KeyStatus& key) { return key.holders == 0 && key.waiters == 0; }

std::string key_json(const KeyStatus& key, const ClientRegistry& clients,
                     std::int64_t now_unix_ms) {
  JsonArray holds;
  for (const HoldStatus& hold : key.holds) holds.add_json(hold_json(hold, clients, now_unix_ms));
  JsonArray queue;
  for (const WaiterStatus& waiter : key.queue) queue.add_json(waiter_json(waiter, clients));
  JsonObject json;
  json.add("kind", kind_name(key.kind));
  json.add("key", key.key);
  json.add("limit", key.limit);
  json.add("holders", key.holders);
  if (key.permits > key.holders) json.add("permits", key.permits);
  json.add("waiters", key.waiters);
  json.add("token", key.fence);
  if (is_idle(key)) json.add("idle_ms", whole_ms(key.idle));
  json.add_json("holds", holds.finish());
  json.add_json("queue", queue.finish());
  return json.finish();
}

// By the time since it was read.
void grow_older(KeyStatus& key, Duration age) {
  key.idle += age;
  for (HoldStatus& hold : key.holds) {
    hold.held += age;
    hold.remaining -= age;
  }
  for (WaiterStatus& waiter : key.queue) waiter.waited += age;
}

bool matches(const KeyQuery& query, const KeyStatus& key) {
  return (query.with_idle || !is_idle(key)) && key.key.starts_with(query.prefix) &&
         key.key.find(query.contains) != std::string::npos;
}

// Whether the query is about some holds and places of a key, not all.
bool is_of_someone(const KeyQuery& query) { return !query.holder.empty() || query.client_id != 0; }

// `Entry` is a HoldStatus or a WaiterStatus.
template <typename Entry>
bool is_theirs(const KeyQuery& query, const Entry& entry) {
  const bool by_id = query.client_id == 0 || entry.session == query.client_id;
  const bool by_name = query.holder.empty() || entry.holder == query.holder ||
                       (entry.client != nullptr && entry.client->name == query.holder);
  return by_id && by_name;
}

// False when nothing of the key is theirs.
bool keep_theirs(const KeyQuery& query, KeyStatus& key) {
  std::erase_if(key.holds, [&](const HoldStatus& hold) { return !is_theirs(query, hold); });
  std::erase_if(key.queue, [&](const WaiterStatus& waiter) { return !is_theirs(query, waiter); });
  return !key.holds.empty() || !key.queue.empty();
}

std::size_t entries(const KeyStatus& key) { return key.holds.size() + key.queue.size(); }

bool is_shown_whole(const KeyStatus& key) {
  return key.holds.size() == key.holders && key.queue.size() == key.waiters;
}

// One answer, from as many slices as the walk takes: those keys that it is to have, as they were
// when they were visited.
class KeyListing final : public ReportRest, public std::enable_shared_from_this<KeyListing> {
 public:
  KeyListing(Engine& engine, const ClientRegistry& clients, const KeyQuery& query,
             PermitPtr confined_to)
      : engine_(engine),
        clients_(clients),
        query_(query),
        confined_to_(std::move(confined_to)),
        place_(query.from) {}

  ReportPiece next() override {
    if (!query_.key.empty()) {
      list_one();
    } else if (!walk()) {
      return {"", position_, shared_from_this()};
    } else if (is_ordered()) {
      keep_first();
    }
    return {json(), position_};
  }

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  struct Listed {
    KeyStatus key;
    SteadyTime read;
    std::int64_t weight;  // the larger comes first
  };
  static bool comes_first(const Listed& a, const Listed& b) { return a.weight > b.weight; }

  bool is_ordered() const { return query_.order != KeyOrder::none; }

  bool may_show(std::string_view key) const {
    return confined_to_ == nullptr || confined_to_->may_touch(key);
  }

  void list_one() {
    place_.done = true;
    if (!may_show(query_.key)) return;
    for (const Kind kind : {Kind::lock, Kind::semaphore}) {
      auto key = read_one(kind, query_.key, query_.entries_max);
      if (key && (!is_of_someone(query_) || keep_theirs(query_, *key))) add(std::move(*key));
    }
  }

  std::optional<KeyStatus> read_one(Kind kind, std::string_view key, std::size_t entries_max) {
    Batch batch(engine_);
    auto status = batch.status(kind, key, entries_max);
    position_ = std::max(position_, batch.commit());
    return status;
  }

  // One slice. False when there is more to visit.
  bool walk() {
    std::size_t visited = 0;
    const auto visit = [&](const KeyStatus& key) {
      if (!matches(query_, key) || !may_show(key.key)) return;
      if (is_of_someone(query_)) return visit_theirs(key, visited);
      is_ordered() ? add_if_first(key) : add(key);
    };
    while (visited < kKeysPerSlice && !is_whole()) {
      std::size_t step = kListedKeysPerStep;
      if (!is_ordered()) step = std::min(step, query_.keys_max - listed_.size());
      position_ = std::max(position_, engine_.list_some(place_, step, visit, kEntriesInList));
      visited += step;
    }
    return is_whole();
  }

  // Theirs may be behind those that a list shows: a key with more is read again, and counts for as
  // many as it has to be looked through.
  void visit_theirs(KeyStatus key, std::size_t& visited) {
    if (!is_shown_whole(key)) {
      auto whole = read_one(key.kind, key.key, kEntriesMax);
      if (!whole) return;
      visited += entries(*whole) / kEntriesInList;
      key = std::move(*whole);
    }
    if (!keep_theirs(query_, key)) return;
    key.holds.resize(std::min(key.holds.size(), kEntriesInList));
    key.queue.resize(std::min(key.queue.size(), kEntriesInList));
    is_ordered() ? add_if_first(key) : add(std::move(key));
  }

  bool is_whole() const {
    if (place_.done || is_ordered()) return place_.done;
    return listed_.size() >= query_.keys_max || entries_ >= kEntriesOfPage;
  }

  void add(KeyStatus key) {
    const SteadyTime now = std::chrono::steady_clock::now();
    const std::int64_t weight = weigh(key, now);
    entries_ += entries(key);
    listed_.push_back({std::move(key), now, weight});
  }

  // The keys are a heap then, the last of them on top.
  void add_if_first(const KeyStatus& key) {
    if (listed_.size() == query_.keys_max) {
      if (weigh(key, std::chrono::steady_clock::now()) <= listed_.front().weight) return;
      std::pop_heap(listed_.begin(), listed_.end(), comes_first);
      listed_.pop_back();
    }
    add(key);
    std::push_heap(listed_.begin(), listed_.end(), comes_first);
  }

  // Of a queue the first has waited longest, and of the holds the first has the smallest fence. A
  // walk takes time: ages are as they were when it began.
  std::int64_t weigh(const KeyStatus& key, SteadyTime now) const {
    const auto age = [&](Duration at_visit) { return (at_visit - (now - begun_)).count(); };
    switch (query_.order) {
      case KeyOrder::none: return 0;
      case KeyOrder::waiters: return key.waiters;
      case KeyOrder::longest_wait:
        return key.queue.empty() ? kNobody : age(key.queue.front().waited);
      case KeyOrder::longest_hold: return key.holds.empty() ? kNobody : age(key.holds.front().held);
    }
    return 0;
  }

  void keep_first() {
    std::sort_heap(listed_.begin(), listed_.end(), comes_first);
    std::size_t kept = 0;
    std::erase_if(listed_, [&](const Listed& listed) {
      return (kept += entries(listed.key)) > kEntriesOfPage;
    });
  }

  std::string json() {
    const auto now = std::chrono::steady_clock::now();
    const std::int64_t now_unix_ms = unix_ms_now();
    JsonArray locks;
    for (Listed& listed : listed_) {
      grow_older(listed.key, now - listed.read);
      locks.add_json(key_json(listed.key, clients_, now_unix_ms));
    }
    JsonObject json;
    json.add_json("locks", locks.finish());
    if (!place_.done) json.add("next", place_text(place_));
    // Queues are the leader's alone, and what is held may be otherwise by now.
    if (engine_.journal_state() == Journal::State::following) json.add("followed", true);
    return json.finish();
  }

  Engine& engine_;
  const ClientRegistry& clients_;
  const KeyQuery query_;
  const PermitPtr confined_to_;
  ListCursor place_;
  std::vector<Listed> listed_;
  std::size_t entries_ = 0;  // of all that were added
  const SteadyTime begun_ = std::chrono::steady_clock::now();
  Position position_ = 0;
};

}  // namespace

std::optional<KeyOrder> parse_key_order(std::string_view name) {
  if (name == "waiters") return KeyOrder::waiters;
  if (name == "longest_wait") return KeyOrder::longest_wait;
  if (name == "longest_hold") return KeyOrder::longest_hold;
  return {};
}

std::shared_ptr<ReportRest> key_listing(Engine& engine, const ClientRegistry& clients,
                                        const KeyQuery& query, PermitPtr confined_to) {
  return std::make_shared<KeyListing>(engine, clients, query, std::move(confined_to));
}

}  // namespace lockd
