// Limits the number of keys over all tables.
//
// Every key owns a unit, and a unit exists once, so the cap is exact under concurrent requests. All
// tables share the budget, so it is a single atomic word.
//
// A unit is free, owned by a key, or in transit between the two. The word counts the free units and
// those in transit together, so that is_exhausted() is a consistent snapshot.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace lockd {

class KeyUnit;

class KeyBudget {
 public:
  static constexpr std::uint64_t kKeysMax = INT32_MAX;

  explicit KeyBudget(std::uint64_t keys_max) : word_(static_cast<std::int64_t>(keys_max) * kFree) {}
  KeyBudget(const KeyBudget&) = delete;
  KeyBudget& operator=(const KeyBudget&) = delete;

  // Takes a free unit. Empty when none is free.
  KeyUnit take();
  // Takes a unit for a key found in the journal, even beyond the cap. New keys then get no unit
  // until enough keys are forgotten.
  KeyUnit take_beyond_limit();
  // Takes over the unit of a forgotten key. While there are more keys than the cap, the unit
  // returns to the budget and the result is empty.
  KeyUnit take_over();
  void give_back() { word_.fetch_add(kFree, std::memory_order_acq_rel); }

  std::int64_t left() const { return word_.load(std::memory_order_acquire) >> 32; }
  // No unit is free or in transit: keys own all of them.
  bool is_exhausted() const {
    const std::int64_t word = word_.load(std::memory_order_acquire);
    return word >> 32 <= 0 && (word & UINT32_MAX) == 0;
  }

 private:
  friend class KeyUnit;

  static constexpr std::int64_t kFree = std::int64_t{1} << 32;
  static constexpr std::int64_t kInTransit = 1;

  // The free units, which may be negative, times 2^32, plus those in transit.
  std::atomic<std::int64_t> word_;
};

// The right to create one key. Returns to its budget unless a key spends it.
class KeyUnit {
 public:
  KeyUnit() = default;
  KeyUnit(KeyUnit&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)) {}
  KeyUnit& operator=(KeyUnit&& other) noexcept {
    std::swap(budget_, other.budget_);
    return *this;
  }
  ~KeyUnit() { leave_transit(KeyBudget::kFree - KeyBudget::kInTransit); }

  explicit operator bool() const { return budget_ != nullptr; }

  // A key owns the unit from now on.
  void spend() { leave_transit(-KeyBudget::kInTransit); }

 private:
  friend class KeyBudget;

  explicit KeyUnit(KeyBudget& budget) : budget_(&budget) {}
  void leave_transit(std::int64_t change) {
    if (budget_ != nullptr) budget_->word_.fetch_add(change, std::memory_order_acq_rel);
    budget_ = nullptr;
  }

  KeyBudget* budget_ = nullptr;
};

inline KeyUnit KeyBudget::take() {
  std::int64_t word = word_.load(std::memory_order_relaxed);
  while (word >> 32 > 0) {
    if (word_.compare_exchange_weak(word, word - kFree + kInTransit, std::memory_order_acq_rel)) {
      return KeyUnit(*this);
    }
  }
  return {};
}

inline KeyUnit KeyBudget::take_beyond_limit() {
  word_.fetch_add(kInTransit - kFree, std::memory_order_acq_rel);
  return KeyUnit(*this);
}

inline KeyUnit KeyBudget::take_over() {
  std::int64_t word = word_.load(std::memory_order_relaxed);
  while (true) {
    const bool too_many = word >> 32 < 0;
    if (word_.compare_exchange_weak(word, word + (too_many ? kFree : kInTransit),
                                    std::memory_order_acq_rel)) {
      return too_many ? KeyUnit() : KeyUnit(*this);
    }
  }
}

}  // namespace lockd
