// How large a test is that could go on for ever: with random operations, seeds or load.
//
// These are the sizes of the release by itself, as `make check-nightly` runs it. They are smaller
// under a sanitizer, and with LOCKD_TEST_SHORT in the environment, as `make test` sets it.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace lockd {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

inline bool is_short() { return std::getenv("LOCKD_TEST_SHORT") != nullptr; }

// What a size is divided by.
inline std::uint64_t test_divisor(std::uint64_t sanitized, std::uint64_t shortened) {
  if (kSanitized) return sanitized;
  return is_short() ? shortened : 1;
}

}  // namespace lockd
