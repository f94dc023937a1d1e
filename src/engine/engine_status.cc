// What only looks: keys one by one or all of them, stats, the invariants.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/engine_core.h"

namespace lockd::detail {
namespace {

// How much is copied under one hold of a shard's lock.
constexpr std::size_t kEntriesPerHold = kEntriesMax;

KeyStatus status_of(const Semaphore& s, Time now, std::size_t entries_max) {
  KeyStatus status{.kind = s.kind,
                   .key = std::string(s.key()),
                   .limit = s.limit,
                   .holders = s.holders,
                   .waiters = s.waiters,
                   .fence = s.holds.empty() ? s.first.fence : s.holds.back()->fence};
  entries_max = std::min(entries_max, kEntriesMax);
  if (s.idle()) status.idle = now - s.first.since;
  const Hold* hold = s.holds.front();
  for (; hold != nullptr && status.holds.size() < entries_max; hold = s.holds.next(hold)) {
    status.holds.push_back({hold->holder.display_name(), hold->holder.session_id(), hold->fence,
                            hold->held_at(now), hold->ttl,
                            std::max(hold->deadline - now, Duration::zero())});
  }
  const Waiter* waiter = s.line.front();
  for (; waiter != nullptr && status.line.size() < entries_max; waiter = s.line.next(waiter)) {
    status.line.push_back(
        {waiter->holder.display_name(), waiter->holder.session_id(), now - waiter->since});
  }
  return status;
}

}  // namespace

std::optional<KeyStatus> EngineCore::status(Turn& turn, Kind kind, std::string_view key,
                                            std::size_t entries_max) {
  return place_of(key).shard.run(turn, [&](LockTable& table) -> std::optional<KeyStatus> {
    const Semaphore* semaphore = table.look_up(time(), kind, key);
    if (semaphore == nullptr) return {};
    return status_of(*semaphore, table.now(), entries_max);
  });
}

Position EngineCore::list_some(ListPlace& place, std::size_t keys_max,
                               const std::function<void(const KeyStatus&)>& visit,
                               std::size_t entries_max) {
  const std::size_t keys_per_hold = std::clamp<std::size_t>(
      kEntriesPerHold / std::max<std::size_t>(entries_max, 1), 1, kKeysPerHold);
  std::vector<KeyStatus> some;
  std::vector<WaitResult> none;
  Position position = 0;
  Turn turn{position, none};
  while (keys_max > 0 && place.shard < shards_.size()) {
    Cursor cursor{.rank = place.rank};
    shards_[place.shard]->run(turn, [&](LockTable& table) {
      const Time now = std::max(table.now(), time());
      table.walk(cursor, std::min(keys_max, keys_per_hold), [&](const Semaphore& semaphore) {
        some.push_back(status_of(semaphore, now, entries_max));
      });
      return Outcome::ok;
    });
    place.rank = cursor.rank;
    if (cursor.done) ++place.shard;
    keys_max -= std::min(keys_max, some.size());
    for (const KeyStatus& status : some) visit(status);
    some.clear();
  }
  place.done = place.shard >= shards_.size();
  return position;
}

Stats EngineCore::stats() {
  Stats sum;
  for (const auto& shard : shards_) {
    sum += shard->look([](const LockTable& table) { return table.stats(); });
  }
  sum.refusals.max_keys = max_keys_refusals_.load(std::memory_order_relaxed);
  return sum;
}

std::string EngineCore::check() {
  for (const auto& shard : shards_) {
    std::string broken = shard->look([](const LockTable& table) { return table.check(); });
    if (!broken.empty()) return broken;
  }
  return {};
}

}  // namespace lockd::detail
