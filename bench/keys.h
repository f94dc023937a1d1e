// The keys that a bench of the engine asks for, and the order in which it does.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockd::bench {

// Keys of 16 bytes, side by side, so that the benchmark's own memory is touched as little as can
// be.
class Keys {
 public:
  explicit Keys(std::size_t count) : size_(count) {
    bytes_.reserve(count * kKeySize);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      bytes_ += "key-" + std::string(12 - number.size(), '0') + number;
    }
  }
  std::size_t size() const { return size_; }
  std::string_view operator[](std::size_t i) const {
    return std::string_view(bytes_).substr(i * kKeySize, kKeySize);
  }

 private:
  static constexpr std::size_t kKeySize = 16;
  std::size_t size_;
  std::string bytes_;
};

// Scattered is what the caches cannot foresee; in order is how leases are renewed: whoever was
// granted first comes first.
class Walk {
 public:
  Walk(std::size_t size, bool scattered) : size_(size), stride_(scattered ? 7'368'787 : 1) {}
  std::size_t next() { return at_ = (at_ + stride_) % size_; }

 private:
  std::size_t size_;
  std::size_t stride_;
  std::size_t at_ = 0;
};

}  // namespace lockd::bench
