#include "base/secret.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace lockd {

bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
  // Every byte of `a` is looked at, whatever `b` is; volatile, so that no compiler stops early.
  volatile unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference = static_cast<unsigned char>(difference | (a[i] ^ other));
  }
  return difference == 0;
}

std::uint64_t TokenSource::next() {
  if (left_ == 0) {
    ssize_t got;
    do {
      got = ::getrandom(words_.data(), sizeof words_, 0);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(sizeof words_)) std::abort();  // a kernel without randomness
    left_ = words_.size();
  }
  return std::exchange(words_[--left_], 0);
}

}  // namespace lockd
