// Which version this is.
#pragma once

#include <string_view>

namespace lockd {

inline constexpr std::string_view kVersion = LOCKD_VERSION;

}  // namespace lockd
