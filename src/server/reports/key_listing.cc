#include "server/reports/report.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
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
  return (query.with_idle || !is_idle(key)) && key.key.starts_with(query.prefix);
}

std::size_t entries(const KeyStatus& key) { return key.holds.size() + key.queue.size(); }

// One answer, from as many slices as the walk takes: those keys that it is to have, as they were
// when they were visited.
class KeyListing final : public ReportRest, public std::enable_shared_from_this<KeyListing> {
 public:
  KeyListing(Engine& engine, const KeyQuery& query, PermitPtr confined_to)
      : engine_(engine), query_(query), confined_to_(std::move(confined_to)), place_(query.from) {}

  ReportPiece next() override {
    if (!query_.key.empty()) {
      list_one();
    } else if (!walk()) {
      return {"", position_, shared_from_this()};
    }
    if (query_.by_waiters) keep_busiest();
    return {json(), position_};
  }

 private:
  struct Listed {
    KeyStatus key;
    std::chrono::steady_clock::time_point read;
  };
  static bool has_more_waiters(const Listed& a, const Listed& b) {
    return a.key.waiters > b.key.waiters;
  }

  bool may_show(std::string_view key) const {
    return confined_to_ == nullptr || confined_to_->may_touch(key);
  }

  void list_one() {
    place_.done = true;
    if (!may_show(query_.key)) return;
    Batch batch(engine_);
    for (const Kind kind : {Kind::lock, Kind::semaphore}) {
      if (const auto key = batch.status(kind, query_.key, kEntriesOfOne)) add(*key);
    }
    position_ = batch.commit();
  }

  // One slice. False when there is more to visit.
  bool walk() {
    const auto visit = [this](const KeyStatus& key) {
      if (!matches(query_, key) || !may_show(key.key)) return;
      query_.by_waiters ? add_if_busy(key) : add(key);
    };
    for (std::size_t visited = 0; visited < kKeysPerSlice && !is_whole();) {
      std::size_t step = kKeysPerStep;
      if (!query_.by_waiters) step = std::min(step, query_.keys_max - listed_.size());
      position_ = std::max(position_, engine_.list_some(place_, step, visit, kEntriesInList));
      visited += step;
    }
    return is_whole();
  }

  bool is_whole() const {
    if (place_.done || query_.by_waiters) return place_.done;
    return listed_.size() >= query_.keys_max || entries_ >= kEntriesOfPage;
  }

  void add(const KeyStatus& key) {
    entries_ += entries(key);
    listed_.push_back({key, std::chrono::steady_clock::now()});
  }

  // The keys are a heap then, the shortest queue on top.
  void add_if_busy(const KeyStatus& key) {
    if (listed_.size() == query_.keys_max) {
      if (key.waiters <= listed_.front().key.waiters) return;
      std::pop_heap(listed_.begin(), listed_.end(), has_more_waiters);
      listed_.pop_back();
    }
    add(key);
    std::push_heap(listed_.begin(), listed_.end(), has_more_waiters);
  }

  void keep_busiest() {
    std::sort_heap(listed_.begin(), listed_.end(), has_more_waiters);
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
      locks.add_json(key_json(listed.key, now_unix_ms));
    }
    JsonObject json;
    json.add_json("locks", locks.finish());
    if (!place_.done) json.add("next", place_text(place_));
    return json.finish();
  }

  Engine& engine_;
  const KeyQuery query_;
  const PermitPtr confined_to_;
  ListPlace place_;
  std::vector<Listed> listed_;
  std::size_t entries_ = 0;  // of all that were added
  Position position_ = 0;
};

}  // namespace

std::shared_ptr<ReportRest> key_listing(Engine& engine, const KeyQuery& query,
                                        PermitPtr confined_to) {
  return std::make_shared<KeyListing>(engine, query, std::move(confined_to));
}

}  // namespace lockd
