// What a request is aimed at: a path and the questions behind it, decoded.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockd {

struct Target {
  std::string path;  // decoded
  std::vector<std::pair<std::string, std::string>> query;
};

// False when a percent sign is not followed by two hex digits. In the query, and only there, `+` is
// a space: so do forms and URL libraries write it.
bool parse_target(std::string_view text, Target* target);

}  // namespace lockd
