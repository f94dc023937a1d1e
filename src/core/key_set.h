// KeySet: a waiting request for several keys, shared by its places in the queues of those keys.
//
// The keys may live in several tables. A place, and the part of the set that points to it, are used
// under the lock of the place's table. The first place that ends also ends the set; the remaining
// places then have no effect and are removed: see SetRules.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/key.h"
#include "lockd/requests.h"
#include "lockd/types.h"

namespace lockd {

struct KeySet {
  struct Part {
    std::uint32_t table;          // its number in the engine
    QueuePlace* place = nullptr;  // null: the place is gone
  };

  bool is_over() const { return outcome.load(std::memory_order_acquire) != Outcome::queued; }
  // False if the set had ended before.
  bool end(Outcome why) {
    Outcome waits = Outcome::queued;
    return outcome.compare_exchange_strong(waits, why, std::memory_order_acq_rel);
  }

  std::vector<Part> parts{};
  // How the set ended, or `queued`. Written under the lock of any of its tables.
  std::atomic<Outcome> outcome{Outcome::queued};
};

// A QueuePlace with of_set.
struct SetPlace : QueuePlace {
  SetPlace(std::shared_ptr<KeySet> set, std::size_t part) : set(std::move(set)), part(part) {
    of_set = true;
  }

  const std::shared_ptr<KeySet> set;
  const std::size_t part;
};

// The set of a place, or null.
inline const std::shared_ptr<KeySet>* set_of(const QueuePlace& place) {
  return place.of_set ? &static_cast<const SetPlace&>(place).set : nullptr;
}

// How many keys a place waits for together.
inline std::uint32_t keys_of(const QueuePlace& place) {
  const std::shared_ptr<KeySet>* const set = set_of(place);
  return set == nullptr ? 1 : static_cast<std::uint32_t>((*set)->parts.size());
}

// The place belongs to a set that has ended, by way of another of its keys.
inline bool is_over(const QueuePlace& place) {
  const std::shared_ptr<KeySet>* const set = set_of(place);
  return set != nullptr && (*set)->is_over();
}

inline void delete_place(QueuePlace* place) {
  place->of_set ? delete static_cast<SetPlace*>(place) : delete place;
}

}  // namespace lockd
