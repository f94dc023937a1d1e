// A LockTable that is rebuilt from the events of another. For tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/lock_table.h"
#include "core/testing/lock_model.h"

namespace lockd {

struct TableReplica {
  explicit TableReplica(std::uint64_t hash_seed)
      : table({.hash_key = HashKey::of_seed(hash_seed)}, budget, &holds) {}

  bool apply(const std::vector<Event>& events) {
    return std::ranges::all_of(events, [&](const Event& event) { return table.apply(event); });
  }
  // Events are idempotent.
  bool apply_twice(const std::vector<Event>& events) {
    return std::ranges::all_of(
        events, [&](const Event& event) { return table.apply(event) && table.apply(event); });
  }
  bool apply_floor(Fence fence) {
    return table.apply({.type = Event::Type::fence_floor, .fence = fence});
  }
  std::string difference(const LockModel& model) {
    const std::string broken = table.check();
    if (!broken.empty()) return broken;
    for (const LockModel::ModelKey& key : model.keys()) {
      if (key.kind == Kind::semaphore || key.holds.empty()) continue;
      // At time zero, so that the call ends no hold.
      if (table.fence(Time{}, key.name).fence < key.last_fence) return "a fence that goes back";
    }
    return model.difference_of_holds(table);
  }
  // Applies the next few keys of `other`. Returns what is wrong, or an empty string.
  std::string describe(const LockTable& other, std::size_t keys_max) {
    std::vector<Event> events;
    other.describe(cursor, keys_max, events);
    for (const Event& event : events) {
      if (!described.emplace(event.kind, std::string(event.key), event.fence).second) {
        return "a hold is described twice";
      }
    }
    return apply(events) ? "" : "a description is refused";
  }

  KeyBudget budget{0};
  HoldBudget holds{{.holds_max = 1, .holds_per_client_max = 1}};  // recovery ignores the caps
  LockTable table;
  Cursor cursor;
  std::set<std::tuple<Kind, std::string, Fence>> described;
};

}  // namespace lockd
