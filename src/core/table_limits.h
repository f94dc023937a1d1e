// TableLimits: whether a table accepts a request, by its own limits and by the budgets that all
// tables share. It records what they refuse.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/hash.h"
#include "base/rate_limit.h"
#include "core/hold_budget.h"
#include "core/key.h"
#include "core/key_budget.h"
#include "core/table_stats.h"
#include "lockd/requests.h"

namespace lockd {

struct TableOptions {
  std::uint32_t waiters_max = 0;  // per key; 0 is no limit
  // A request that does not wait is refused with max_waiters, not with held, at a full queue.
  bool refuses_tries_at_full_queue = false;
  // A semaphore keeps its limit while it is idle: a request that names another limit is refused
  // until the key is forgotten. Otherwise the next request for an idle key sets the limit.
  bool keeps_idle_limits = false;
  Duration ttl_max{};    // a longer lease is granted this much; zero is no limit
  Fence last_fence = 0;  // the first grant gets the next one
  HashKey hash_key{};
  bool events = true;             // false: no journal reads them
  std::size_t history_size = 0;   // bytes of history to keep; 0: none
  RateLimit* refusals = nullptr;  // limits how many refusals of all tables are recorded; null: none
  // A wait, or a hold, of this age is recorded as slow; zero: never.
  Duration slow_wait{};
  Duration slow_hold{};
};

class TableLimits {
 public:
  // All of them outlive this. `holds` may be null.
  TableLimits(const TableOptions& options, KeyBudget& keys, HoldBudget* holds, TableStats& stats)
      : options_(options), keys_(keys), holds_(holds), stats_(stats) {}

  // Takes a unit for a hold or a place, or says why there is none and records the refusal.
  Outcome admit(const KeyRequest& request, const Key* key, Time now) {
    const Outcome outcome = holds_.take(request.holder);
    return outcome == Outcome::ok ? outcome : refuse(request, key, outcome, now);
  }
  // Counts and records that a limit refused the request. Returns `why`.
  Outcome refuse(const KeyRequest& request, const Key* key, Outcome why, Time now) {
    record_refusal(request, key, why, now);
    return stats_.refused(why);
  }
  void record_refusal(const KeyRequest& request, const Key* key, Outcome why, Time now);

  // A request must name the limit of this key. Otherwise it sets the limit.
  bool has_binding_limit(const Key& key) const { return options_.keeps_idle_limits || !key.idle(); }
  // A request that cannot be granted at once is refused because the queue is full.
  bool is_refused_by_queue(const Key& key, Duration wait) const {
    const bool is_try = wait == Duration::zero();
    return (!is_try || options_.refuses_tries_at_full_queue) && is_queue_full(key);
  }
  bool is_queue_full(const Key& key) const {
    return options_.waiters_max != 0 && key.waiters() >= options_.waiters_max;
  }
  Duration capped(Duration ttl) const {
    return options_.ttl_max == Duration::zero() ? ttl : std::min(ttl, options_.ttl_max);
  }

  KeyBudget& keys() { return keys_; }
  HoldUnits& holds() { return holds_; }
  const HoldUnits& holds() const { return holds_; }

 private:
  const TableOptions& options_;
  KeyBudget& keys_;
  HoldUnits holds_;
  TableStats& stats_;
};

}  // namespace lockd
