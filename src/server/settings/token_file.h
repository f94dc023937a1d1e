// The file that holds the auth tokens: one, or two while the second takes the place of the first.
#pragma once

#include <string>
#include <vector>

#include "config/environment.h"

namespace lockd {

struct TokenFile {
  std::vector<std::string> tokens{};  // one or two
  std::string error{};                // why there are none; no secret is in it
  bool open_to_others = false;
};

TokenFile read_token_file(const std::string& path, const config::Environment& environment);

}  // namespace lockd
