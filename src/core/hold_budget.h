// How many holds and places in queues there may be: over all tables, and of one client.
//
// A place becomes a hold, so they are counted together: the unit that a request takes when it joins
// a queue is its hold's afterwards, and no waiter is ever passed over for want of one. What a
// journal tells of has a unit whatever the caps say; until enough have ended nothing new gets any.
//
// Tables share a HoldBudget; each has HoldUnits of its own, under its shard's lock, and takes units
// from the budget in chunks, so that the shared count is rarely touched. Requests never exceed the
// cap. Caps below 262,144 are exact; a larger one may refuse up to 0.1 % early, by what other
// tables have at hand.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/hash.h"
#include "base/mutex.h"
#include "lockd/types.h"

namespace lockd {

// Counts what each client has: a session, or a name. Exact. Any thread may call.
class ClientHolds {
 public:
  // 0 is no limit: then nothing is counted.
  ClientHolds(std::uint32_t holds_max, const HashKey& hash_key);

  bool is_limited() const { return holds_max_ != 0; }
  // False when the client has as many as it may. A secret without a session is nobody's, and is
  // not counted.
  bool take(const Holder& holder) { return add(holder, holds_max_); }
  // For what exists whatever the cap says.
  void take_over_limit(const Holder& holder) { add(holder, UINT32_MAX); }
  void give_back(const Holder& holder);

  std::uint32_t count(const Holder& holder) const;

 private:
  struct Hash {
    using is_avalanching = void;
    std::size_t operator()(const std::string& client) const { return hash_bytes(client, key); }

    HashKey key;  // clients choose the names
  };
  struct alignas(64) Stripe {
    mutable Mutex mutex;
    boost::unordered_flat_map<std::string, std::uint32_t, Hash> counts GUARDED_BY(mutex);
  };

  Stripe& stripe_of(const std::string& client) const;
  bool add(const Holder& holder, std::uint32_t holds_max);

  const std::uint32_t holds_max_;
  const Hash hash_;
  mutable std::array<Stripe, 64> stripes_;
};

class HoldBudget {
 public:
  // In both 0 is no limit.
  struct Caps {
    std::uint64_t holds_max = 0;
    std::uint32_t holds_per_client_max = 0;
  };
  static constexpr std::uint64_t kHoldsMax = INT64_MAX / 2;

  explicit HoldBudget(const Caps& caps, const HashKey& hash_key = {})
      : clients_(caps.holds_per_client_max, hash_key),
        is_limited_(caps.holds_max != 0 || clients_.is_limited()),
        chunk_(std::clamp<std::int64_t>(total(caps) / 131'072, 1, 64)),
        left_(total(caps)) {}
  HoldBudget(const HoldBudget&) = delete;
  HoldBudget& operator=(const HoldBudget&) = delete;

  bool is_limited() const { return is_limited_; }
  std::int64_t left() const { return left_.load(std::memory_order_relaxed); }
  ClientHolds& clients() { return clients_; }

 private:
  friend class HoldUnits;

  static std::int64_t total(const Caps& caps) {
    return static_cast<std::int64_t>(caps.holds_max == 0 ? kHoldsMax : caps.holds_max);
  }

  // A chunk or, near the cap, less; 0 when none is left.
  std::int64_t take_chunk();
  void move(std::int64_t units) { left_.fetch_add(units, std::memory_order_relaxed); }

  ClientHolds clients_;
  const bool is_limited_;
  const std::int64_t chunk_;
  std::atomic<std::int64_t> left_;  // below zero: the journal told of more than there may be
};

// The units of one table. Without a limit it counts nothing. Not thread-safe.
class HoldUnits {
 public:
  // `budget` may be null: no limit. Else it outlives this.
  explicit HoldUnits(HoldBudget* budget)
      : budget_(budget != nullptr && budget->is_limited() ? budget : nullptr) {}
  ~HoldUnits() {
    if (budget_ != nullptr) budget_->move(taken_);
  }
  HoldUnits(const HoldUnits&) = delete;
  HoldUnits& operator=(const HoldUnits&) = delete;

  // For a hold or a place of this holder: ok, or max_holds, or max_client_holds.
  Outcome take(const Holder& holder) {
    return budget_ == nullptr ? Outcome::ok : take_counted(holder);
  }
  // For a hold that exists whatever the caps say.
  void take_over_limit(const Holder& holder);
  void give_back(const Holder& holder) {
    if (budget_ != nullptr) give_back_counted(holder);
  }
  // The hold is left to its lease. It keeps its unit, and is no client's any more.
  void detach_client(const Holder& holder) {
    if (budget_ != nullptr) budget_->clients().give_back(holder);
  }

  // The client's from now on, whatever its cap: it was another's, or nobody's.
  void attach_client(const Holder& holder) {
    if (budget_ != nullptr) budget_->clients().take_over_limit(holder);
  }

  bool counts() const { return budget_ != nullptr; }
  std::int64_t in_use() const { return taken_ - cached_; }

 private:
  Outcome take_counted(const Holder& holder);
  void give_back_counted(const Holder& holder);
  bool take_unit();

  HoldBudget* const budget_;
  std::int64_t taken_ = 0;   // from the budget
  std::int64_t cached_ = 0;  // of those: for whom may come
};

}  // namespace lockd
