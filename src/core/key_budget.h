// How many keys there may be, over all tables.
//
// The one thing that tables share, and the one place in the core where two threads may meet: a
// count. Every key owns a unit; a unit exists once, so the cap is exact whoever asks at once.
//
// A unit is free, or owned by a key, or in somebody's hand on its way between the two. The first
// and the last are counted in one word, so that is_exhausted() speaks of one instant.
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

  // An empty unit when none is free.
  KeyUnit take();
  // A unit for a key that exists whatever the cap says now: one found in the journal. Until enough
  // of those are gone, none is free for new ones.
  KeyUnit take_over_limit();
  // The unit of a key that is no more, into the caller's hand. While there are more keys than there
  // may be it goes back, and the caller gets an empty one.
  KeyUnit take_over();
  void give_back() { word_.fetch_add(kFree, std::memory_order_acq_rel); }

  std::int64_t left() const { return word_.load(std::memory_order_acquire) >> 32; }
  // None is free, and none is in anybody's hand: every one is owned by a key.
  bool is_exhausted() const {
    const std::int64_t word = word_.load(std::memory_order_acquire);
    return word >> 32 <= 0 && (word & UINT32_MAX) == 0;
  }

 private:
  friend class KeyUnit;

  static constexpr std::int64_t kFree = std::int64_t{1} << 32;
  static constexpr std::int64_t kInHand = 1;

  std::atomic<std::int64_t> word_;  // free, which may be negative, times 2^32, plus in hand
};

// The right to one key. Goes back to its budget unless a key takes it over.
class KeyUnit {
 public:
  KeyUnit() = default;
  KeyUnit(KeyUnit&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)) {}
  KeyUnit& operator=(KeyUnit&& other) noexcept {
    std::swap(budget_, other.budget_);
    return *this;
  }
  ~KeyUnit() { put_down(KeyBudget::kFree - KeyBudget::kInHand); }

  explicit operator bool() const { return budget_ != nullptr; }

  // From here on a key owns it.
  void spend() { put_down(-KeyBudget::kInHand); }

 private:
  friend class KeyBudget;

  explicit KeyUnit(KeyBudget& budget) : budget_(&budget) {}
  void put_down(std::int64_t change) {
    if (budget_ != nullptr) budget_->word_.fetch_add(change, std::memory_order_acq_rel);
    budget_ = nullptr;
  }

  KeyBudget* budget_ = nullptr;
};

inline KeyUnit KeyBudget::take() {
  std::int64_t word = word_.load(std::memory_order_relaxed);
  while (word >> 32 > 0) {
    if (word_.compare_exchange_weak(word, word - kFree + kInHand, std::memory_order_acq_rel)) {
      return KeyUnit(*this);
    }
  }
  return {};
}

inline KeyUnit KeyBudget::take_over_limit() {
  word_.fetch_add(kInHand - kFree, std::memory_order_acq_rel);
  return KeyUnit(*this);
}

inline KeyUnit KeyBudget::take_over() {
  std::int64_t word = word_.load(std::memory_order_relaxed);
  while (true) {
    const bool too_many = word >> 32 < 0;
    if (word_.compare_exchange_weak(word, word + (too_many ? kFree : kInHand),
                                    std::memory_order_acq_rel)) {
      return too_many ? KeyUnit() : KeyUnit(*this);
    }
  }
}

}  // namespace lockd
