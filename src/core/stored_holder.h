// A Holder that owns its name, in 16 bytes.
//
// A held key should cost little, and most names are short: up to 15 bytes lie inside; longer ones
// on the heap. Moving never allocates, so a waiter's holder becomes a hold's without a way to fail.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "lockd/types.h"

namespace lockd {

class StoredHolder {
 public:
  StoredHolder() = default;  // nobody: the empty name
  explicit StoredHolder(const Holder& holder) {
    if (holder.is_secret()) {
      low_ = holder.secret();
      high_ = kSecret << kTagShift | holder.session_id();
    } else {
      store_name(holder.name());
    }
  }
  StoredHolder(StoredHolder&& other) noexcept
      : low_(std::exchange(other.low_, 0)), high_(std::exchange(other.high_, 0)) {}
  StoredHolder& operator=(StoredHolder&& other) noexcept {
    std::swap(low_, other.low_);
    std::swap(high_, other.high_);
    return *this;
  }
  ~StoredHolder() {
    if (tag() == kOnHeap) delete[] heap_name();
  }

  Holder view() const {
    if (is_secret()) return Holder::of_secret(low_, session_id());
    if (tag() == kOnHeap) return std::string_view(heap_name(), high_ & kPayload);
    return std::string_view(reinterpret_cast<const char*>(this), tag());
  }

  // For people: a name as it is, a session's as "tcp:<session>". Never the secret.
  std::string display_name() const;

  bool is_secret() const { return tag() == kSecret; }
  SessionId session_id() const { return is_secret() ? high_ & kPayload : 0; }

  // Whether it is the same. Secrets are compared in constant time: one word against one word.
  bool equals(const Holder& holder) const {
    if (is_secret() != holder.is_secret()) return false;
    if (is_secret()) return (low_ ^ holder.secret()) == 0;
    return view().name() == holder.name();
  }

 private:
  static constexpr unsigned kTagShift = 56;
  static constexpr std::uint64_t kPayload = (std::uint64_t{1} << kTagShift) - 1;

  // The last byte: the size of a name that lies inside, or one of these.
  static constexpr std::size_t kInlineMax = 15;
  static constexpr std::uint64_t kOnHeap = 0xfe;  // an address, then a size
  static constexpr std::uint64_t kSecret = 0xff;  // a secret, then a session
  static_assert(std::endian::native == std::endian::little, "the tag is the last byte");
  static_assert(kSessionIdMax == kPayload);

  std::uint64_t tag() const { return high_ >> kTagShift; }
  char* heap_name() const { return std::bit_cast<char*>(low_); }
  void store_name(std::string_view name);

  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
};

static_assert(sizeof(StoredHolder) == 16);

}  // namespace lockd
