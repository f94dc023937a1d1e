// Waiting for what another thread or process brings about.
#pragma once

#include <chrono>
#include <thread>

namespace lockd {

// Calls `holds` until it is true, or `patience` is over: as long as a sanitizer on a busy machine
// may take. Whether it was.
template <typename Holds>
bool eventually(Holds holds, std::chrono::milliseconds patience = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace lockd
