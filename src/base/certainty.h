// Until when a hold is certain, and that it is over for good once it is.
//
// The owner asks on any thread, the renewer extends, and the process may be stopped between any two
// instructions of either. Whoever first finds that the time has passed ends it, so that no renewal
// confirmed late makes anybody believe again: an answer of false is final, for everybody.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace lockd {

// `Time` is a time point of <chrono>, in nanoseconds, or has them as its member `ns`.
template <class Time>
class Certainty {
 public:
  explicit Certainty(Time until) : word_(word_of(until)) {}

  // Whether it lasts. `now` must have been read after the call was asked for.
  bool lasts(Time now) noexcept {
    std::int64_t word = word_.load(std::memory_order_acquire);
    while (!is_over(word)) {
      if (now < time_of(word)) return true;
      if (word_.compare_exchange_weak(word, word | kOver, std::memory_order_acq_rel)) break;
    }
    return false;
  }

  // Moves its end, to an earlier time too. False when it was over by `now`: then it stays so.
  bool extend(Time now, Time until) noexcept { return replace(now, word_of(until)); }
  // Ends it now. False when it was over already.
  bool end(Time now) noexcept { return replace(now, word_of(now) | kOver); }

  // Whether anybody has ended it, or seen that it is over.
  bool is_over() const noexcept { return is_over(word_.load(std::memory_order_acquire)); }
  // When it ends, or ended.
  Time until() const noexcept { return time_of(word_.load(std::memory_order_acquire)); }

 private:
  // Nanoseconds, and whether it is over in the lowest bit.
  static constexpr std::int64_t kOver = 1;
  static constexpr std::int64_t kTimeMax = INT64_MAX / 2;

  // Unless it is over by `now`.
  bool replace(Time now, std::int64_t next) noexcept {
    std::int64_t word = word_.load(std::memory_order_acquire);
    do {
      if (!lasts(now)) return false;
    } while (!word_.compare_exchange_weak(word, next, std::memory_order_acq_rel));
    return true;
  }

  static constexpr std::int64_t word_of(Time time) {
    if constexpr (requires { time.ns; }) {
      return static_cast<std::int64_t>(std::min<std::uint64_t>(time.ns, kTimeMax)) << 1;
    } else {
      return std::clamp<std::int64_t>(time.time_since_epoch().count(), 0, kTimeMax) << 1;
    }
  }
  static constexpr Time time_of(std::int64_t word) {
    if constexpr (requires(Time time) { time.ns; }) {
      return Time{static_cast<std::uint64_t>(word >> 1)};
    } else {
      return Time(typename Time::duration(word >> 1));
    }
  }
  static constexpr bool is_over(std::int64_t word) { return (word & kOver) != 0; }

  std::atomic<std::int64_t> word_;
};

}  // namespace lockd
