// -n and -w, which mean the same to every command that waits.
#pragma once

#include <algorithm>
#include <chrono>

#include "lockctl/arguments.h"
#include "lockd/types.h"

namespace lockd::cli {

// The longest that can be asked for: 292 years, in whole seconds.
inline constexpr Duration kEndless = std::chrono::floor<std::chrono::seconds>(kDurationMax);

// How long to wait in the queue; without either of them, for as long as it takes.
inline Duration wait_of(const Arguments& arguments) {
  if (arguments.has("nonblock")) return Duration::zero();
  return std::min(arguments.seconds("wait").value_or(kEndless), kEndless);
}

// What is left of an endless wait is endless; of another, not less than nothing.
inline Duration whole_if_endless(Duration left) {
  constexpr Duration kNearlyEndless = kEndless / 2;
  return left > kNearlyEndless ? kEndless : std::max(left, Duration::zero());
}

}  // namespace lockd::cli
