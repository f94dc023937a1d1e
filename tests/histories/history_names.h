// What functions, results and transports are called in a file, in the order of their enumerations.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace lockd::histories {

inline constexpr std::array<std::string_view, 12> kFunctionNames{
    "acquire", "enqueue", "wait",       "renew", "release", "revoke",
    "believe", "stats",   "disconnect", "lost",  "(fault)", "heal"};
inline constexpr std::array<std::string_view, 9> kResultNames{"ok",
                                                              "queued",
                                                              "timeout",
                                                              "error:not_held",
                                                              "error:storage",
                                                              "error:draining",
                                                              "error:refused",
                                                              "error:not_leader",
                                                              "info"};
inline constexpr std::array<std::string_view, 4> kViaNames{"tcp", "tls", "http", "lib"};

// Its place among them; their number if it is none of them.
template <std::size_t size>
std::size_t index_of(const std::array<std::string_view, size>& names, std::string_view name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

}  // namespace lockd::histories
