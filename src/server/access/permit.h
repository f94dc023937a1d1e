// What one client may do: its rights, and the keys and channels that they are for.
//
// An immutable value, which any thread may read. Who is found by its auth token or certificate gets
// one from Access; so does who is asked for neither.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/operations.h"

namespace lockd {

// Rights that somebody has.
class Rights {
 public:
  static constexpr Rights all() { return Rights().with(Right::admin); }

  // `admin` is all of them.
  constexpr Rights with(Right right) const {
    const unsigned all = bit(Right::lock) | bit(Right::signal) | bit(Right::read);
    Rights more = *this;
    more.bits_ |= bit(right) | (right == Right::admin ? all : 0);
    return more;
  }
  constexpr Rights without(Right right) const {
    Rights fewer = *this;
    fewer.bits_ &= ~bit(right);
    return fewer;
  }

  constexpr bool allow(Right needed) const {
    if (needed == Right::none) return true;
    if (needed == Right::read_or_lock) return allow(Right::read) || allow(Right::lock);
    return (bits_ & bit(needed)) != 0;
  }

  friend constexpr bool operator==(Rights, Rights) = default;

 private:
  static constexpr unsigned bit(Right right) { return 1U << static_cast<unsigned>(right); }

  unsigned bits_ = 0;
};

struct Permit {
  // What its client has shown.
  enum class Proof : std::uint8_t {
    none,         // nothing: it was not asked, or has yet to
    shared,       // the auth token of --auth-token or --auth-token-file
    token,        // one of --access
    certificate,  // that is listed in --access
  };
  using Expiry = std::chrono::sys_seconds;

  std::string name{};  // of the token or certificate; empty: nothing was shown
  Rights rights{};
  std::vector<std::string> prefixes{};  // of keys and of channels; none: all of them
  std::optional<Expiry> expires{};
  Proof proof = Proof::none;
  std::string shown{};  // by which it is found: a digest, or a certificate's name

  bool may(Right needed) const { return rights.allow(needed); }
  // It has rights over some keys and channels only.
  bool is_confined() const { return !prefixes.empty(); }
  // A key, or a channel.
  bool may_touch(std::string_view name) const;
  // Whatever the pattern matches is within one of the prefixes.
  bool may_listen(std::string_view pattern) const;
  // Whether it lets a client hear all that the other one does: signals, and events of keys.
  bool hears_all_of(const Permit& other) const;
  bool has_expired(std::chrono::system_clock::time_point now) const {
    return expires.has_value() && now >= *expires;
  }

  // Why something is denied, for people: it lacks the right, or has it for other names.
  std::string lacks(Right needed) const;
  std::string is_confined_to() const;
};

using PermitPtr = std::shared_ptr<const Permit>;

// The word of a right in the file of --access, and in every document. Precondition: it is one that
// can be given.
std::string_view word_of(Right right);
std::optional<Right> right_of(std::string_view word);
// Those that can be given, in the order in which they are shown.
inline constexpr Right kRights[] = {Right::lock, Right::signal, Right::read, Right::admin};

// "2027-01-01", or, when it is not the beginning of a day, "2027-01-01T12:30:00Z".
std::string expiry_text(Permit::Expiry expiry);

}  // namespace lockd
