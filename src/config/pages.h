// A program's table as text for people and shells: help, manual, completions, Markdown, and a file
// of settings to begin with. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "config/option.h"

namespace lockd::config {

// What --help prints.
std::string help_text(const Place& place);

// The page of the manual, as roff with the macros of man(7); `source` is the program's version.
std::string man_page(const Place& place, std::string_view source);
// "lockctl-wal-verify": the page's name, and with .1 behind it the file's.
std::string page_name(const Place& place);

// What bash sources, zsh autoloads or sources, and fish sources.
std::string bash_completion(const Command& program);
std::string zsh_completion(const Command& program);
std::string fish_completion(const Command& program);

// Rows of a Markdown table with the columns flag, variable, default and meaning.
std::string markdown_rows(std::span<const Option> options);
// The same in groups, each with its heading and the head of its table.
std::string markdown_groups(std::span<const Option> options);

// A file for `config` in which every setting stands, explained and commented out: it changes
// nothing until somebody takes a # away.
std::string starting_config(std::string_view program, std::span<const Option> table);

// --- in parts ---

// "lockctl run [OPTION...] KEY [--] COMMAND..."
std::string usage_text(const Place& place);
// "--server, --cluster, --http and so on": what a page says of the options that it shares; empty
// when it shares none.
std::string shared_text(const Command& command);
// "lockctl connection": the command whose own they are. Precondition: there are some.
std::string shared_path(const Place& place);
// "--port N", "--debug, --no-debug", "-w, --wait, --timeout SECONDS".
std::string flag_text(const Option& option);
// What it is for, and what it takes.
std::string meaning_text(const Option& option);
// What applies without it, and the variables that set it; empty when there is nothing to say.
std::string facts_text(const Option& option);
// `text` in lines of at most 80 columns, each after `margin`. A line that begins with a space is
// left as it is.
std::string wrapped(std::string_view text, std::string_view margin);

}  // namespace lockd::config
