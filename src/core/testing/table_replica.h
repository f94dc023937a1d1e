// A LockTable that is built from the events of another, and from nothing else. For tests.
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
      // At a time before all others, so that it ends nothing.
      if (table.fence(Time{}, key.name).fence < key.last_fence) return "a fence that goes back";
    }
    return model.difference_of_holds(table);
  }
  // The next few keys of `other`. A walk comes to a key once, however the table grows or shrinks.
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
  HoldBudget holds{{.holds_max = 1, .holds_per_client_max = 1}};  // less than there is
  LockTable table;
  Cursor cursor;
  std::set<std::tuple<Kind, std::string, Fence>> described;
};

}  // namespace lockd
