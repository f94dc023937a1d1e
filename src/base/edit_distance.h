// How near one word is to another: for those who ask "did you mean".
#pragma once

#include <cstddef>
#include <string_view>

namespace lockd {

// How many letters must be added, dropped or changed to make one of the other; `limit` if it is not
// less.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

}  // namespace lockd
