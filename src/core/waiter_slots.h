// Gives each waiter a small number by which it can be found as long as it waits.
//
// Not thread-safe. Owns no waiter.
#pragma once

#include <cstdint>
#include <vector>

#include "core/semaphore.h"

namespace lockd {

class WaiterSlots {
 public:
  // Sets the waiter's slot.
  void insert(Waiter* waiter) {
    if (free_.empty()) {
      waiter->slot = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back(waiter);
    } else {
      waiter->slot = free_.back();
      free_.pop_back();
      slots_[waiter->slot] = waiter;
    }
  }

  void remove(const Waiter* waiter) {
    slots_[waiter->slot] = nullptr;
    free_.push_back(waiter->slot);
    if (free_.size() == slots_.size() && slots_.size() > 1024) {
      // A crowd has come and gone: so does the memory.
      slots_ = {};
      free_ = {};
    }
  }

  // Null when the slot is free. It may have been given to another waiter since: compare.
  Waiter* find(std::uint32_t slot) const { return slot < slots_.size() ? slots_[slot] : nullptr; }

  std::size_t size() const { return slots_.size() - free_.size(); }

 private:
  std::vector<Waiter*> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace lockd
