// Chance from a seed: the same on every machine, and cheap to begin anew (SplitMix64).
#pragma once

#include <cstdint>

namespace lockd::crash {

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

 private:
  std::uint64_t state_;
};

}  // namespace lockd::crash
