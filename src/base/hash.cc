#include "base/hash.h"

#include <random>

namespace lockd {
namespace {

std::uint64_t random_word() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

HashKey HashKey::random() { return {random_word(), random_word()}; }

HashKey HashKey::of_seed(std::uint64_t seed) { return {seed, ~seed}; }

}  // namespace lockd
