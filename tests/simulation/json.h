// The little of JSON that a client writes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "lockd/types.h"

namespace lockd::simulation {

inline std::string member(std::string_view name, std::string_view value) {
  return "\"" + std::string(name) + "\":\"" + std::string(value) + "\"";
}
inline std::string member(std::string_view name, std::uint64_t value) {
  return "\"" + std::string(name) + "\":" + std::to_string(value);
}
inline std::uint64_t ms_of(Duration length) {
  return static_cast<std::uint64_t>(length / std::chrono::milliseconds(1));
}

}  // namespace lockd::simulation
