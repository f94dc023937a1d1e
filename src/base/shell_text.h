// Text as completions for shells have it. Pure functions.
//
// For what makes completions out of a table: lockctl's commands, the server's settings.
#pragma once

#include <string>
#include <string_view>

namespace lockd {

// In single quotes, as bash and zsh take it.
std::string shell_quoted(std::string_view text);

// Within the brackets and colons of zsh's _arguments and _describe.
std::string zsh_escaped(std::string_view text);

// In single quotes, within which fish knows backslashes.
std::string fish_quoted(std::string_view text);

// The first sentence of a help, for a place where there is room for one.
std::string first_sentence(std::string_view help);

}  // namespace lockd
