// The version of this build, and the commit that it was built from.
#pragma once

#include <string>
#include <string_view>

namespace lockd {

inline constexpr std::string_view kVersion = LOCKD_VERSION;

// "lockd 0.1.0 (1a2b3c4d5e6f)\n". The build writes it, by cmake/version.cmake; the commit is
// "unknown" where the sources are not a git repository.
std::string version_text(std::string_view program);

}  // namespace lockd
