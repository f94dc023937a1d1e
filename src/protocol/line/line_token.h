// The token of the line protocol: 32 lower-case hex digits that name one grant.
//
// The first 16 are the grant's fence, so that the tokens of one key sort, as plain strings, in the
// order of their grants. The other 16 are a secret, which serves as the holder: a client that knows
// both may renew and release. A plain value for any thread.
//
// There is no operator==: secrets are compared where holds are kept, in constant time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lockd/types.h"

namespace lockd {

struct LineToken {
  static constexpr std::size_t kSize = 32;

  Fence fence = 0;
  std::uint64_t secret = 0;

  std::array<char, kSize> format() const noexcept;

  // Nothing for any text that format() cannot have made: another length, upper case, a prefix. Such
  // a text names no grant, and the answer to it is that of any wrong token.
  static std::optional<LineToken> parse(std::string_view text) noexcept;
};

}  // namespace lockd
