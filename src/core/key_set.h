// A request for several keys, from when it joins their queues until it is over: see SetRules.
//
// It has a place in the queue of each of its keys, in one table or in many. Each place is its
// table's, and used under that table's lock; so is the part that points to it. Whatever ends one of
// the places ends the set, and the others are for nobody from then on.
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
    std::uint32_t table;          // its number, for whoever has to find it
    QueuePlace* place = nullptr;  // null: that place is gone
  };

  bool is_over() const { return outcome.load(std::memory_order_acquire) != Outcome::queued; }
  // False if it had ended before.
  bool end(Outcome why) {
    Outcome waits = Outcome::queued;
    return outcome.compare_exchange_strong(waits, why, std::memory_order_acq_rel);
  }

  std::vector<Part> parts{};
  // How it ended; queued while it has not. Written under the lock of any of its tables.
  std::atomic<Outcome> outcome{Outcome::queued};
};

// Where a place belongs.
struct PlaceInSet {
  std::shared_ptr<KeySet> set;
  std::size_t part = 0;
};

}  // namespace lockd
