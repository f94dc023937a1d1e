// What a terminal makes of a character: whether it can be seen, and how wide it is. Pure; for any
// thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace lockd::cli {

// The size in bytes of the character at the front: what its first byte says, or 1 if it is none.
// Precondition: there is one.
std::size_t character_size(std::string_view text);

// Precondition: it is one character of UTF-8.
char32_t code_point_of(std::string_view character);

// What shows as nothing or as a space, and lets one name look like another: the controls of
// bidirectional text, joiners, selectors, fillers, unusual spaces.
bool is_invisible(char32_t code_point);

// 2 for East Asian characters and emoji, 0 for what combines with the one before, 1 otherwise.
std::size_t columns_of(char32_t code_point);

}  // namespace lockd::cli
