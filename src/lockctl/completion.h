// Completions for shells, from the table of commands. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockd::cli {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

// The first words of commands, each with what to say of it; "wal" once.
std::vector<std::pair<std::string, std::string>> first_words();
// The commands of two words that begin with it: the second word, and what to say of it.
std::vector<std::pair<std::string, std::string>> second_words(std::string_view first);

}  // namespace lockd::cli
