// Secrets: where they come from, and how they are compared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockd {

// Whether they are equal, in a time that depends on the sizes only.
bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

// Random words from the kernel, fetched some at a time. Used by one thread at a time.
class TokenSource {
 public:
  TokenSource() = default;
  virtual ~TokenSource() = default;  // a simulation has words of its own, the same in every run
  TokenSource(const TokenSource&) = delete;
  TokenSource& operator=(const TokenSource&) = delete;

  virtual std::uint64_t next();

 private:
  std::array<std::uint64_t, 64> words_{};
  std::size_t left_ = 0;
};

}  // namespace lockd
