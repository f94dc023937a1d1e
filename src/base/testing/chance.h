// Chance from a seed: the same on every machine, and cheap to begin anew (SplitMix64).
#pragma once

#include <chrono>
#include <cstdint>

namespace lockd {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}
  // One of its own for each pair of numbers.
  Chance(std::uint64_t seed, std::uint64_t a, std::uint64_t b) : state_(seed) {
    state_ = next() ^ a;
    state_ = next() ^ b;
  }

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + below(most - least + 1);
  }
  bool percent(std::uint64_t p) { return below(100) < p; }
  std::chrono::nanoseconds below(std::chrono::nanoseconds length) {
    return std::chrono::nanoseconds(
        static_cast<std::int64_t>(below(static_cast<std::uint64_t>(length.count()))));
  }

 private:
  std::uint64_t state_;
};

// One of several things, by their weights: each is asked for in turn, and one of them is it.
class Lot {
 public:
  Lot(Chance& chance, std::uint64_t weights) : left_(chance.below(weights)) {}

  bool falls_on(std::uint64_t weight) {
    if (left_ < weight) return true;
    left_ -= weight;
    return false;
  }

 private:
  std::uint64_t left_;
};

}  // namespace lockd
