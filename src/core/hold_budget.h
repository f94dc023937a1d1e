// Limits the number of holds and queue places: over all tables, and per client.
//
// Holds and places are counted together, because a place becomes a hold: the unit that a request
// takes when it joins a queue passes to its hold, so no waiter is skipped for lack of a unit. A
// hold that recovery finds in the journal gets a unit beyond the cap; new requests get units again
// once enough holds have ended.
//
// Tables share a HoldBudget. Each table has its own HoldUnits, guarded by its shard's lock, and
// takes units from the budget in chunks, so that the shared counter is rarely touched. Requests
// never exceed the cap. Caps below 262,144 are exact; a larger cap may refuse up to 0.1 % early,
// because other tables cache units.
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

// Counts the holds and places of each client, which is a session or a name. Exact. Thread-safe.
class ClientHolds {
 public:
  // 0: no limit, and nothing is counted.
  ClientHolds(std::uint32_t holds_max, const HashKey& hash_key);

  bool is_limited() const { return holds_max_ != 0; }
  // False when the client is at its limit. A secret without a session belongs to no client and is
  // not counted.
  bool take(const Holder& holder) { return add(holder, holds_max_); }
  // Counts a hold that exists already, even beyond the limit.
  void take_beyond_limit(const Holder& holder) { add(holder, UINT32_MAX); }
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
  struct Caps {  // 0: no limit
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

  // Returns the units taken: a chunk, fewer near the cap, or 0 when none is left.
  std::int64_t take_chunk();
  void move(std::int64_t units) { left_.fetch_add(units, std::memory_order_relaxed); }

  ClientHolds clients_;
  const bool is_limited_;
  const std::int64_t chunk_;
  std::atomic<std::int64_t> left_;  // negative after recovery of more holds than the cap
};

// The units of one table. Counts nothing without a limit. Not thread-safe.
class HoldUnits {
 public:
  // A null `budget` means no limit; another budget outlives this object.
  explicit HoldUnits(HoldBudget* budget)
      : budget_(budget != nullptr && budget->is_limited() ? budget : nullptr) {}
  ~HoldUnits() {
    if (budget_ != nullptr) budget_->move(taken_);
  }
  HoldUnits(const HoldUnits&) = delete;
  HoldUnits& operator=(const HoldUnits&) = delete;

  // Takes a unit for a hold or a place of this holder. Returns ok, max_holds or max_client_holds.
  Outcome take(const Holder& holder) {
    return budget_ == nullptr ? Outcome::ok : take_counted(holder);
  }
  // Takes a unit for a hold that exists already, even beyond the caps.
  void take_beyond_limit(const Holder& holder);
  void give_back(const Holder& holder) {
    if (budget_ != nullptr) give_back_counted(holder);
  }
  // The hold of an ended session keeps its unit and no longer counts for a client.
  void detach_client(const Holder& holder) {
    if (budget_ != nullptr) budget_->clients().give_back(holder);
  }
  // The hold now counts for this client, even beyond its limit.
  void attach_client(const Holder& holder) {
    if (budget_ != nullptr) budget_->clients().take_beyond_limit(holder);
  }

  bool counts() const { return budget_ != nullptr; }
  std::int64_t in_use() const { return taken_ - cached_; }

 private:
  Outcome take_counted(const Holder& holder);
  void give_back_counted(const Holder& holder);
  bool take_unit();

  HoldBudget* const budget_;
  std::int64_t taken_ = 0;   // units taken from the budget
  std::int64_t cached_ = 0;  // taken units that no hold or place uses
};

}  // namespace lockd
