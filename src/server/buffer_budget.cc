#include "server/buffer_budget.h"

#include <algorithm>

namespace lockd {

std::size_t BufferLedger::class_of(std::size_t bytes) {
  if (bytes < kLargeMin) return 0;
  return std::min<std::size_t>(std::bit_width(bytes), kClasses - 1);
}

void BufferLedger::change(Account& account, std::size_t bytes) {
  budget_.bytes_.fetch_add(bytes - account.bytes_, std::memory_order_relaxed);  // modulo 2^64
  const std::size_t before = class_of(account.bytes_);
  const std::size_t after = class_of(bytes);
  account.bytes_ = bytes;
  if (before == after) return;
  if (before != 0) classes_[before].remove(&account);
  if (after != 0) classes_[after].push_back(&account);
  publish_largest();
}

void BufferLedger::publish_largest() {
  std::size_t largest = kClasses - 1;
  while (largest > 0 && classes_[largest].empty()) --largest;
  budget_.largest_[number_].store(static_cast<std::uint8_t>(largest), std::memory_order_relaxed);
}

BufferLedger::Account* BufferLedger::largest_over_budget() {
  if (!budget_.is_exceeded()) return nullptr;
  const std::uint8_t own = budget_.largest_[number_].load(std::memory_order_relaxed);
  const auto end = budget_.largest_.begin() + static_cast<std::ptrdiff_t>(budget_.ledgers_.load());
  const bool others_have_larger =
      std::any_of(budget_.largest_.begin(), end, [own](const std::atomic<std::uint8_t>& other) {
        return other.load(std::memory_order_relaxed) > own;
      });
  return own == 0 || others_have_larger ? nullptr : classes_[own].front();
}

}  // namespace lockd
