// The file that holds the auth tokens: one, or two while the second takes the place of the first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/environment.h"

namespace lockd {

struct TokenFile {
  std::vector<std::string> tokens{};  // one or two
  std::string error{};                // why there are none; no secret is in it
  bool open_to_others = false;
};

// Of fewer than 16 characters; and what is said of it.
bool is_weak_token(std::string_view token);
inline constexpr std::string_view kWeakToken =
    "an auth token of fewer than 16 characters can be guessed: make it longer, at random";

TokenFile read_token_file(const std::string& path, const config::Environment& environment);

}  // namespace lockd
